"""The core loop, its threads, and calls to it from other loops and from synchronous code."""
