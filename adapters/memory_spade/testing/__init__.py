"""What tests, examples and demos of agents with memory need: an XMPP server and a scripted language model."""
