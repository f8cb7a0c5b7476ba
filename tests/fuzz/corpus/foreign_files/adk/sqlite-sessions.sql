BEGIN TRANSACTION;
CREATE TABLE app_states (
    app_name TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    update_time REAL NOT NULL
);
CREATE TABLE events (
    id TEXT NOT NULL,
    app_name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    invocation_id TEXT NOT NULL,
    timestamp REAL NOT NULL,
    event_data TEXT NOT NULL,
    PRIMARY KEY (app_name, user_id, session_id, id),
    FOREIGN KEY (app_name, user_id, session_id) REFERENCES sessions(app_name, user_id, id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('d7ea5b8b-b3f1-4f7c-b43f-9f7c1b0b504b','helper','ann','noon','i1',1700000000.0,'{"content":{"parts":[{"text":"I keep bees"}],"role":"user"},"invocation_id":"i1","author":"user","actions":{"state_delta":{},"artifact_delta":{},"requested_auth_configs":{},"requested_tool_confirmations":{}},"node_info":{"path":""},"id":"d7ea5b8b-b3f1-4f7c-b43f-9f7c1b0b504b","timestamp":1700000000.0}');
INSERT INTO "events" VALUES('f5093c43-431a-410c-bbc2-b258bf25da55','helper','ann','noon','i1',1700000001.0,'{"content":{"parts":[{"text":"Noted."}],"role":"model"},"invocation_id":"i1","author":"helper","actions":{"state_delta":{},"artifact_delta":{},"requested_auth_configs":{},"requested_tool_confirmations":{}},"node_info":{"path":""},"id":"f5093c43-431a-410c-bbc2-b258bf25da55","timestamp":1700000001.0}');
INSERT INTO "events" VALUES('89536f2a-2019-4364-acb4-041161a7bfcb','helper','ann','noon','i2',1700000002.0,'{"content":{"parts":[{"text":"My hat is blue"}],"role":"user"},"invocation_id":"i2","author":"user","actions":{"state_delta":{},"artifact_delta":{},"requested_auth_configs":{},"requested_tool_confirmations":{}},"node_info":{"path":""},"id":"89536f2a-2019-4364-acb4-041161a7bfcb","timestamp":1700000002.0}');
INSERT INTO "events" VALUES('a146823a-08b3-4843-b0f6-834047202358','helper','ann','noon','i3',1700000003.0,'{"invocation_id":"i3","author":"user","actions":{"state_delta":{},"artifact_delta":{},"requested_auth_configs":{},"requested_tool_confirmations":{},"rewind_before_invocation_id":"i2"},"node_info":{"path":""},"id":"a146823a-08b3-4843-b0f6-834047202358","timestamp":1700000003.0}');
INSERT INTO "events" VALUES('48f5c884-1273-4fde-8e5b-f94a0297668a','helper','ann','noon','i4',1700000004.0,'{"content":{"parts":[{"text":"My hat is red"}],"role":"user"},"invocation_id":"i4","author":"user","actions":{"state_delta":{},"artifact_delta":{},"requested_auth_configs":{},"requested_tool_confirmations":{}},"node_info":{"path":""},"id":"48f5c884-1273-4fde-8e5b-f94a0297668a","timestamp":1700000004.0}');
CREATE TABLE sessions (
    app_name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    create_time REAL NOT NULL,
    update_time REAL NOT NULL,
    PRIMARY KEY (app_name, user_id, id)
);
INSERT INTO "sessions" VALUES('helper','ann','noon','{}',1.79580699350984382628e+09,1700000004.0);
CREATE TABLE user_states (
    app_name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    state TEXT NOT NULL,
    update_time REAL NOT NULL,
    PRIMARY KEY (app_name, user_id)
);
COMMIT;
