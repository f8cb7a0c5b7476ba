"""Add, find and delete a memory with a client that was generated from the description of the API.

python tests/app/serve/generated_client.py FOLDER ADDRESS TOKEN    FOLDER has the package `generated`
"""

from __future__ import annotations

import sys


def main(folder: str, address: str, token: str) -> None:
    sys.path.insert(0, folder)
    from generated import AuthenticatedClient
    from generated.api.own_memories import add_record, delete_record, get_record, search
    from generated.models import Draft, Problem, Search

    with AuthenticatedClient(address, token=token, raise_on_unexpected_status=True) as client:
        added = add_record.sync(client=client, body=Draft("Ann drinks jasmine tea", kind="fact"))
        assert added.text == "Ann drinks jasmine tea"
        found = search.sync(client=client, body=Search("what does Ann drink?", limit=1))
        assert [hit.record.id for hit in found.hits] == [added.id]
        stale = delete_record.sync(added.id, client=client, if_match='"7"')
        assert isinstance(stale, Problem)
        assert stale.status == 412
        assert delete_record.sync(added.id, client=client).records == 1
        gone = get_record.sync(added.id, client=client)
        assert isinstance(gone, Problem)
        assert gone.status == 404
    with AuthenticatedClient(address, token="somebody else's") as stranger:
        assert add_record.sync(client=stranger, body=Draft("Hello")).status == 401


if __name__ == "__main__":
    main(*sys.argv[1:])
