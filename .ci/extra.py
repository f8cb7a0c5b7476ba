"""Try an extra by its name where it is installed alone: what it asks for is there, and no module of ours misses it."""

import re
import sys
from importlib import import_module, metadata
from importlib.metadata import packages_distributions


def plain(name: str) -> str:
    """A name of a package as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


extra, own = sys.argv[1], metadata.distribution("memory-core")
wanted = [re.match(r"[\w.-]+", line) for line in own.requires or () if re.search(f"extra == ['\"]{extra}['\"]", line)]
asked = {plain(name[0]) for name in wanted if name} - {"memory-core"}
for module, packages in packages_distributions().items():
    if asked & {*map(plain, packages)}:
        import_module(module)
for file in own.files or ():
    if file.suffix == ".py" and file.name != "__main__.py" and file.parts[0].startswith("memory_"):
        try:
            import_module(".".join(file.with_suffix("").parts).removesuffix(".__init__"))
        except ImportError as error:
            if f"memory-core[{extra}]" in str(error):
                raise
