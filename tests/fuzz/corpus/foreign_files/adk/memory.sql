BEGIN TRANSACTION;
CREATE TABLE adk_memory_metadata (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
INSERT INTO "adk_memory_metadata" VALUES('schema_version','1');
CREATE TABLE memory_events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  app_name TEXT NOT NULL,
  user_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  author TEXT NOT NULL,
  timestamp REAL NOT NULL,
  content_json TEXT NOT NULL,
  search_text TEXT NOT NULL,
  UNIQUE(app_name, user_id, session_id, event_id)
);
INSERT INTO "memory_events" VALUES(1,'helper','ann','s','e1','user',1700000000.0,'{"parts":[{"text":"ann keeps bees"}],"role":"user"}','ann keeps bees');
INSERT INTO "memory_events" VALUES(2,'helper','ann','s','e2','user',1700000000.0,'{"parts":[{"text":"ann sails"}],"role":"user"}','ann sails');
INSERT INTO "memory_events" VALUES(3,'helper','tom','s','e1','user',1700000000.0,'{"parts":[{"text":"tom keeps bees"}],"role":"user"}','tom keeps bees');
INSERT INTO "memory_events" VALUES(4,'helper','tom','s','e2','user',1700000000.0,'{"parts":[{"text":"tom sails"}],"role":"user"}','tom sails');
COMMIT;
