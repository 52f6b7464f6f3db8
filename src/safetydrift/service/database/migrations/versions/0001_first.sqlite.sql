CREATE TABLE audit (
	org INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	actor TEXT DEFAULT '' NOT NULL, 
	action VARCHAR(64) NOT NULL, 
	subject TEXT DEFAULT '' NOT NULL, 
	detail TEXT DEFAULT '' NOT NULL, 
	previous VARCHAR(64) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_audit PRIMARY KEY (org, number)
)
--
CREATE TABLE events (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	org INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	kind VARCHAR(24) NOT NULL, 
	run_id INTEGER DEFAULT '0' NOT NULL, 
	subject TEXT DEFAULT '' NOT NULL
)
--
CREATE INDEX ix_events_at ON events (at)
--
CREATE TABLE leases (
	name VARCHAR(64) NOT NULL, 
	holder VARCHAR(64) NOT NULL, 
	until FLOAT NOT NULL, 
	CONSTRAINT pk_leases PRIMARY KEY (name)
)
--
CREATE TABLE positions (
	name VARCHAR(64) NOT NULL, 
	at INTEGER NOT NULL, 
	CONSTRAINT pk_positions PRIMARY KEY (name)
)
--
CREATE TABLE organisations (
	id INTEGER NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	created FLOAT NOT NULL, 
	audit_number INTEGER DEFAULT '0' NOT NULL, 
	audit_digest VARCHAR(64) DEFAULT '' NOT NULL, 
	sealed_to INTEGER DEFAULT '0' NOT NULL, 
	emptied_to INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_organisations PRIMARY KEY (id), 
	CONSTRAINT uq_organisations_name UNIQUE (name)
)
--
CREATE TABLE run_states (
	org INTEGER NOT NULL, 
	"key" VARCHAR(512) NOT NULL, 
	version BIGINT NOT NULL, 
	touched FLOAT NOT NULL, 
	state BLOB NOT NULL, 
	CONSTRAINT pk_run_states PRIMARY KEY (org, "key")
)
--
CREATE INDEX ix_run_states_touched ON run_states (touched)
--
CREATE TABLE workers (
	id VARCHAR(64) NOT NULL, 
	host TEXT DEFAULT '' NOT NULL, 
	pid INTEGER NOT NULL, 
	version TEXT DEFAULT '' NOT NULL, 
	started FLOAT NOT NULL, 
	seen FLOAT NOT NULL, 
	figures TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_workers PRIMARY KEY (id)
)
--
CREATE TABLE alarms (
	id INTEGER NOT NULL, 
	org INTEGER NOT NULL, 
	agent TEXT DEFAULT '' NOT NULL, 
	at FLOAT NOT NULL, 
	taken_to INTEGER DEFAULT '0' NOT NULL, 
	alarmed BOOLEAN DEFAULT '0' NOT NULL, 
	state TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_alarms PRIMARY KEY (id), 
	CONSTRAINT uq_alarms_org_agent UNIQUE (org, agent), 
	CONSTRAINT fk_alarms_org FOREIGN KEY(org) REFERENCES organisations (id) ON DELETE CASCADE
)
--
CREATE TABLE backtests (
	id INTEGER NOT NULL, 
	org INTEGER NOT NULL, 
	policy INTEGER NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	asked_by TEXT DEFAULT '' NOT NULL, 
	started FLOAT NOT NULL, 
	finished FLOAT, 
	result TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_backtests PRIMARY KEY (id), 
	CONSTRAINT fk_backtests_org FOREIGN KEY(org) REFERENCES organisations (id) ON DELETE CASCADE
)
--
CREATE INDEX ix_backtests_org_policy ON backtests (org, policy)
--
CREATE TABLE outbox (
	id INTEGER NOT NULL, 
	org INTEGER NOT NULL, 
	channel VARCHAR(24) NOT NULL, 
	subject VARCHAR(64) NOT NULL, 
	payload TEXT DEFAULT '' NOT NULL, 
	due FLOAT NOT NULL, 
	attempts INTEGER DEFAULT '0' NOT NULL, 
	delivered FLOAT, 
	error TEXT DEFAULT '' NOT NULL, 
	receipt TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_outbox PRIMARY KEY (id), 
	CONSTRAINT fk_outbox_org FOREIGN KEY(org) REFERENCES organisations (id) ON DELETE CASCADE
)
--
CREATE INDEX ix_outbox_delivered_due ON outbox (delivered, due)
--
CREATE TABLE policies (
	id INTEGER NOT NULL, 
	org INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	name TEXT DEFAULT '' NOT NULL, 
	text TEXT DEFAULT '' NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	loosens TEXT DEFAULT '' NOT NULL, 
	note TEXT DEFAULT '' NOT NULL, 
	created_by TEXT DEFAULT '' NOT NULL, 
	created FLOAT NOT NULL, 
	decided_by TEXT DEFAULT '' NOT NULL, 
	decided FLOAT, 
	CONSTRAINT pk_policies PRIMARY KEY (id), 
	CONSTRAINT uq_policies_org_number UNIQUE (org, number), 
	CONSTRAINT fk_policies_org FOREIGN KEY(org) REFERENCES organisations (id) ON DELETE CASCADE
)
--
CREATE TABLE reports (
	id INTEGER NOT NULL, 
	org INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	agent TEXT DEFAULT '' NOT NULL, 
	host TEXT DEFAULT '' NOT NULL, 
	outcome VARCHAR(16) NOT NULL, 
	detail TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_reports PRIMARY KEY (id), 
	CONSTRAINT fk_reports_org FOREIGN KEY(org) REFERENCES organisations (id) ON DELETE CASCADE
)
--
CREATE INDEX ix_reports_org_at ON reports (org, at)
--
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	org INTEGER NOT NULL, 
	"key" VARCHAR(512) NOT NULL, 
	parent VARCHAR(512) DEFAULT '' NOT NULL, 
	agent TEXT DEFAULT '' NOT NULL, 
	host TEXT DEFAULT '' NOT NULL, 
	person TEXT DEFAULT '' NOT NULL, 
	framework TEXT DEFAULT '' NOT NULL, 
	category TEXT DEFAULT '' NOT NULL, 
	pipeline TEXT DEFAULT '' NOT NULL, 
	task TEXT DEFAULT '' NOT NULL, 
	origin VARCHAR(16) DEFAULT 'guarded' NOT NULL, 
	opened FLOAT NOT NULL, 
	last FLOAT NOT NULL, 
	ended FLOAT, 
	calls INTEGER DEFAULT '0' NOT NULL, 
	warned INTEGER DEFAULT '0' NOT NULL, 
	asked INTEGER DEFAULT '0' NOT NULL, 
	refused INTEGER DEFAULT '0' NOT NULL, 
	failed INTEGER DEFAULT '0' NOT NULL, 
	waiting INTEGER DEFAULT '0' NOT NULL, 
	probability FLOAT, 
	highest FLOAT DEFAULT '0' NOT NULL, 
	state INTEGER, 
	risk VARCHAR(32) DEFAULT '' NOT NULL, 
	course TEXT DEFAULT '' NOT NULL, 
	last_tool TEXT DEFAULT '' NOT NULL, 
	last_intervention TEXT DEFAULT '' NOT NULL, 
	last_message TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT uq_runs_org_key UNIQUE (org, "key"), 
	CONSTRAINT fk_runs_org FOREIGN KEY(org) REFERENCES organisations (id) ON DELETE CASCADE
)
--
CREATE INDEX ix_runs_org_agent_last ON runs (org, agent, last)
--
CREATE INDEX ix_runs_org_last ON runs (org, last)
--
CREATE INDEX ix_runs_org_person_last ON runs (org, person, last)
--
CREATE TABLE tokens (
	id INTEGER NOT NULL, 
	org INTEGER NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	scopes TEXT DEFAULT '' NOT NULL, 
	created FLOAT NOT NULL, 
	created_by TEXT DEFAULT '' NOT NULL, 
	expires FLOAT, 
	revoked FLOAT, 
	used FLOAT, 
	CONSTRAINT pk_tokens PRIMARY KEY (id), 
	CONSTRAINT fk_tokens_org FOREIGN KEY(org) REFERENCES organisations (id) ON DELETE CASCADE, 
	CONSTRAINT uq_tokens_digest UNIQUE (digest)
)
--
CREATE INDEX ix_tokens_org ON tokens (org)
--
CREATE TABLE visits (
	digest VARCHAR(64) NOT NULL, 
	org INTEGER NOT NULL, 
	who TEXT DEFAULT '' NOT NULL, 
	roles TEXT DEFAULT '' NOT NULL, 
	token_id INTEGER, 
	csrf VARCHAR(64) NOT NULL, 
	created FLOAT NOT NULL, 
	expires FLOAT NOT NULL, 
	CONSTRAINT pk_visits PRIMARY KEY (digest), 
	CONSTRAINT fk_visits_org FOREIGN KEY(org) REFERENCES organisations (id) ON DELETE CASCADE
)
--
CREATE TABLE approvals (
	id VARCHAR(40) NOT NULL, 
	org INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	call_row INTEGER NOT NULL, 
	call_id VARCHAR(256) NOT NULL, 
	tool VARCHAR(300) NOT NULL, 
	action_digest VARCHAR(64) NOT NULL, 
	presented_digest VARCHAR(64) NOT NULL, 
	policy INTEGER DEFAULT '0' NOT NULL, 
	question TEXT DEFAULT '' NOT NULL, 
	status VARCHAR(16) DEFAULT 'pending' NOT NULL, 
	created FLOAT NOT NULL, 
	expires FLOAT NOT NULL, 
	escalated FLOAT, 
	answered FLOAT, 
	valid_until FLOAT, 
	consumed FLOAT, 
	nonce VARCHAR(64) DEFAULT '' NOT NULL, 
	answered_by TEXT DEFAULT '' NOT NULL, 
	reason TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_approvals PRIMARY KEY (id), 
	CONSTRAINT fk_approvals_org FOREIGN KEY(org) REFERENCES organisations (id) ON DELETE CASCADE, 
	CONSTRAINT fk_approvals_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
)
--
CREATE INDEX ix_approvals_org_status_created ON approvals (org, status, created)
--
CREATE INDEX ix_approvals_run_id_call_id ON approvals (run_id, call_id)
--
CREATE TABLE calls (
	id INTEGER NOT NULL, 
	org INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	call_id VARCHAR(256) NOT NULL, 
	tool VARCHAR(300) NOT NULL, 
	arguments TEXT DEFAULT '' NOT NULL, 
	at FLOAT NOT NULL, 
	decided VARCHAR(16) NOT NULL, 
	intervention VARCHAR(16) NOT NULL, 
	would_be VARCHAR(16) DEFAULT '' NOT NULL, 
	candidate VARCHAR(16) DEFAULT '' NOT NULL, 
	rule TEXT DEFAULT '' NOT NULL, 
	probability FLOAT, 
	low FLOAT, 
	high FLOAT, 
	threshold FLOAT, 
	state INTEGER, 
	risk VARCHAR(32) DEFAULT '' NOT NULL, 
	message TEXT DEFAULT '' NOT NULL, 
	details TEXT DEFAULT '' NOT NULL, 
	error TEXT DEFAULT '' NOT NULL, 
	policy INTEGER DEFAULT '0' NOT NULL, 
	latency FLOAT DEFAULT '0' NOT NULL, 
	answered_by TEXT DEFAULT '' NOT NULL, 
	status VARCHAR(16) DEFAULT 'open' NOT NULL, 
	result TEXT DEFAULT '' NOT NULL, 
	settled FLOAT, 
	CONSTRAINT pk_calls PRIMARY KEY (id), 
	CONSTRAINT fk_calls_org FOREIGN KEY(org) REFERENCES organisations (id) ON DELETE CASCADE, 
	CONSTRAINT fk_calls_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
)
--
CREATE INDEX ix_calls_org_at ON calls (org, at)
--
CREATE INDEX ix_calls_org_intervention_at ON calls (org, intervention, at)
--
CREATE INDEX ix_calls_org_tool_at ON calls (org, tool, at)
--
CREATE INDEX ix_calls_run_id_call_id ON calls (run_id, call_id)
--
CREATE INDEX ix_calls_run_id_number ON calls (run_id, number)
--
CREATE TABLE messages (
	id INTEGER NOT NULL, 
	org INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	message_id VARCHAR(128) NOT NULL, 
	at FLOAT NOT NULL, 
	text TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_messages PRIMARY KEY (id), 
	CONSTRAINT uq_messages_run_id_message_id UNIQUE (run_id, message_id), 
	CONSTRAINT fk_messages_org FOREIGN KEY(org) REFERENCES organisations (id) ON DELETE CASCADE, 
	CONSTRAINT fk_messages_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
)
--
CREATE VIRTUAL TABLE calls_text USING fts5(
	org, tool, arguments, message, content='calls', content_rowid='id', columnsize=0, detail=full
)
--
CREATE TRIGGER calls_text_added AFTER INSERT ON calls BEGIN
	INSERT INTO calls_text(rowid, org, tool, arguments, message)
	VALUES (new.id, new.org, new.tool, new.arguments, new.message);
END
--
CREATE TRIGGER calls_text_removed AFTER DELETE ON calls BEGIN
	INSERT INTO calls_text(calls_text, rowid, org, tool, arguments, message)
	VALUES ('delete', old.id, old.org, old.tool, old.arguments, old.message);
END
--
CREATE TRIGGER calls_text_changed AFTER UPDATE OF tool, arguments, message ON calls BEGIN
	INSERT INTO calls_text(calls_text, rowid, org, tool, arguments, message)
	VALUES ('delete', old.id, old.org, old.tool, old.arguments, old.message);
	INSERT INTO calls_text(rowid, org, tool, arguments, message)
	VALUES (new.id, new.org, new.tool, new.arguments, new.message);
END
