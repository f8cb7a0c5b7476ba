"""The working memory of a long task: the prompt of the next step, and a search for an early step.

python examples/memory_bank.py
"""

from __future__ import annotations

from memory_core import MemoryBank, MemoryEntry, MemoryQuery

STEPS = (
    ("df -h", "/dev/sda1 is 97% full"),
    ("systemctl status postgres", "failed: could not write lock file postmaster.pid"),
    ("du -s /var/*", "41G in /var/log, 3G in /var/lib"),
    ("ls -S /var/log", "app.log is 40G"),
    ("tail -1 app.log", "DEBUG retrying connection"),
    ("truncate -s 0 app.log", ""),
)


def main() -> None:
    """Run the steps on three servers, then search them."""
    bank = MemoryBank()
    number = 0
    for server in ("one", "two", "three"):
        for command, result in STEPS:
            number += 1
            importance = 0.9 if "failed" in result else 0.5
            entry = MemoryEntry(
                skill_name="shell",
                thinking=f"server {server}",
                command=command,
                result=result,
                importance=importance,
                step_number=number,
            )
            bank.add_entry(entry)
    print("The next step sees:", bank.prompt_block(), sep="\n")
    print(f"\n{len(bank.get_all_memories())} steps, all readable; {bank.get_stats()}")
    first = bank.get_relevant_memories(MemoryQuery(keywords=["postgres"], max_results=3))[-1]
    print(f"found again: Step {first.step_number} - {first.skill_name}: {first.result}")


if __name__ == "__main__":
    main()
