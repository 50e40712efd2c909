INSERT INTO attempts (tenant, job, attempt, kind, path, worker, due_at, leased_at, started_at, finished_at, outcome,
                      class, effect, wish, reported, state, next_at, policy, status, duration_ms, code, message, excerpt,
                      result, commit_heard_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
        ?25)
