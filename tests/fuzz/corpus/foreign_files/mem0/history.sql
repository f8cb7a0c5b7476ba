BEGIN TRANSACTION;
CREATE TABLE history (
                        id           TEXT PRIMARY KEY,
                        memory_id    TEXT,
                        old_memory   TEXT,
                        new_memory   TEXT,
                        event        TEXT,
                        created_at   DATETIME,
                        updated_at   DATETIME,
                        is_deleted   INTEGER,
                        actor_id     TEXT,
                        role         TEXT
                    );
INSERT INTO "history" VALUES('d1dc31f2-4002-4c10-9793-435f68165088','m1',NULL,'Ann lives in Oslo','ADD','2026-03-02T09:00:00+00:00',NULL,0,NULL,NULL);
INSERT INTO "history" VALUES('010228fd-1fdb-4112-b0cc-2497492da45e','m1','Ann lives in Oslo','Ann lives in Rome','UPDATE',NULL,NULL,0,NULL,NULL);
INSERT INTO "history" VALUES('553fd3b9-e181-441f-8ad6-0056584c2cc4','m2',NULL,'Ann has a boat','ADD',NULL,NULL,0,NULL,NULL);
INSERT INTO "history" VALUES('94e41076-1eeb-4ea8-b1c4-4dcab571356f','m2','Ann has a boat',NULL,'DELETE',NULL,NULL,1,NULL,NULL);
CREATE TABLE messages (
                        id TEXT PRIMARY KEY,
                        session_scope TEXT,
                        role TEXT,
                        content TEXT,
                        name TEXT,
                        created_at DATETIME
                    );
COMMIT;
