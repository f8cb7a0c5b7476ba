BEGIN TRANSACTION;
CREATE TABLE agent_memories (
                            id TEXT PRIMARY KEY,
                            agent_id TEXT NOT NULL,
                            category TEXT NOT NULL,
                            content TEXT NOT NULL,
                            context TEXT,
                            confidence REAL DEFAULT 1.0,
                            created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
                            last_accessed TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
                            access_count INTEGER DEFAULT 0
                        );
INSERT INTO "agent_memories" VALUES('a56b41fc-baaf-4f19-9f93-71bc4dfa0a2c','bot@localhost','fact','Ann keeps bees','she said so',1.0,'2026-11-27T19:16:34.113055','2026-11-27T19:16:34.113058',0);
INSERT INTO "agent_memories" VALUES('2a0b38b5-3423-4df5-9785-4928274d8856','bot@localhost','preference','Ann prefers tea',NULL,1.0,'2026-11-27T19:16:34.137213','2026-11-27T19:16:34.137216',0);
CREATE INDEX idx_agent_category
                        ON agent_memories(agent_id, category)
                    ;
CREATE INDEX idx_agent_recent
                        ON agent_memories(agent_id, last_accessed DESC)
                    ;
CREATE INDEX idx_agent_content
                        ON agent_memories(agent_id, content)
                    ;
COMMIT;
