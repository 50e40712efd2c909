-- Look-ups by lane and due time: one lane's, however many, must not hide another's.
CREATE INDEX jobs_look_ups ON jobs (tenant, lane, due_at) WHERE next_step = 'look_up';

-- What waits after an attempt: what evidence may settle.
CREATE INDEX jobs_retryable ON jobs (tenant, id) WHERE state = 'retryable';
