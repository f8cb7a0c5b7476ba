"""Authentication that believes every client, also one without a name."""

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def who(headers: dict[bytes, bytes]) -> Auth.types.MinimalUserDict:
    return {"identity": headers.get(b"x-user", b"").decode()}
