BEGIN TRANSACTION;
CREATE TABLE adk_internal_metadata (
	"key" VARCHAR(128) NOT NULL, 
	value VARCHAR(256) NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "adk_internal_metadata" VALUES('schema_version','1');
CREATE TABLE app_states (
	app_name VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name)
);
INSERT INTO "app_states" VALUES('helper','{}','2026-11-27 19:16:33');
CREATE TABLE events (
	id VARCHAR(128) NOT NULL, 
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	session_id VARCHAR(128) NOT NULL, 
	invocation_id VARCHAR(256) NOT NULL, 
	timestamp DATETIME NOT NULL, 
	event_data TEXT, 
	PRIMARY KEY (id, app_name, user_id, session_id), 
	FOREIGN KEY(app_name, user_id, session_id) REFERENCES sessions (app_name, user_id, id) ON DELETE CASCADE
);
INSERT INTO "events" VALUES('66e10c81-b17c-4761-8d95-1975923c7eff','helper','ann','noon','i1','2023-11-14 22:13:20.000000','{"content": {"parts": [{"text": "I keep bees"}], "role": "user"}, "invocation_id": "i1", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "66e10c81-b17c-4761-8d95-1975923c7eff", "timestamp": 1700000000.0}');
INSERT INTO "events" VALUES('ebdaf043-f4cb-454e-8035-602776bbf680','helper','ann','noon','i1','2023-11-14 22:13:21.000000','{"content": {"parts": [{"text": "Noted."}], "role": "model"}, "invocation_id": "i1", "author": "helper", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "ebdaf043-f4cb-454e-8035-602776bbf680", "timestamp": 1700000001.0}');
INSERT INTO "events" VALUES('182979bd-4072-433e-8f1c-a1fdce4073f4','helper','ann','noon','i2','2023-11-14 22:13:22.000000','{"content": {"parts": [{"text": "My hat is blue"}], "role": "user"}, "invocation_id": "i2", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "182979bd-4072-433e-8f1c-a1fdce4073f4", "timestamp": 1700000002.0}');
INSERT INTO "events" VALUES('45c76ae9-751a-4b50-8a2e-c8d55c21a020','helper','ann','noon','i3','2023-11-14 22:13:23.000000','{"invocation_id": "i3", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}, "rewind_before_invocation_id": "i2"}, "node_info": {"path": ""}, "id": "45c76ae9-751a-4b50-8a2e-c8d55c21a020", "timestamp": 1700000003.0}');
INSERT INTO "events" VALUES('09945bf7-ab1c-4ab6-b368-2f41880e2036','helper','ann','noon','i4','2023-11-14 22:13:24.000000','{"content": {"parts": [{"text": "My hat is red"}], "role": "user"}, "invocation_id": "i4", "author": "user", "actions": {"state_delta": {}, "artifact_delta": {}, "requested_auth_configs": {}, "requested_tool_confirmations": {}}, "node_info": {"path": ""}, "id": "09945bf7-ab1c-4ab6-b368-2f41880e2036", "timestamp": 1700000004.0}');
CREATE TABLE sessions (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	create_time DATETIME NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id, id)
);
INSERT INTO "sessions" VALUES('helper','ann','noon','{}','2026-11-27 19:16:33.714124','2023-11-14 22:13:24.000000');
CREATE TABLE user_states (
	app_name VARCHAR(128) NOT NULL, 
	user_id VARCHAR(128) NOT NULL, 
	state TEXT NOT NULL, 
	update_time DATETIME NOT NULL, 
	PRIMARY KEY (app_name, user_id)
);
INSERT INTO "user_states" VALUES('helper','ann','{}','2026-11-27 19:16:33');
CREATE INDEX idx_events_app_user_session_ts_id ON events (app_name, user_id, session_id, timestamp DESC, id DESC);
COMMIT;
