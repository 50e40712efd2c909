//! The statements, as text: ours, or one of them swapped for a faulty one.

use posthaste_receiver::ledger::sql::{self, Dialect};

use super::{Answer, Database, Row, Session, Value};

/// The texts under test.
#[derive(Clone)]
pub(crate) struct Statements {
    pub(crate) dialect: Dialect,
    texts: Vec<(&'static str, String)>,
}

/// What a claim said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) path: String,
    pub(crate) fence: Option<i64>,
    pub(crate) row: Row,
}

impl Claimed {
    pub(crate) fn granted(&self) -> Option<i64> {
        let granted = ["first_run", "retry_after_failure"].contains(&self.path.as_str());
        granted.then(|| self.fence.expect("a grant has a fence"))
    }
}

/// What `get.sql` shows.
pub(crate) type Entry = Row;

impl Statements {
    pub(crate) fn ours(dialect: Dialect) -> Self {
        let texts = sql::files(dialect).iter().map(|(name, text)| (*name, (*text).to_owned()));
        Self { dialect, texts: texts.collect() }
    }

    /// The statement of that name, such as `claim.sql`, is swapped for `faulty/{dialect}/{file}`.
    pub(crate) fn with(mut self, name: &str, file: &str) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faulty");
        let path = format!("{folder}/{}/{file}", self.dialect.name());
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let place = self.texts.iter_mut().find(|(known, _)| *known == name).unwrap();
        assert_ne!(place.1, text, "{file} is ours");
        place.1 = text;
        self
    }

    fn text(&self, name: &str) -> &str {
        &self.texts.iter().find(|(known, _)| *known == name).unwrap().1
    }

    pub(crate) fn on<'a>(&'a self, database: &dyn Database) -> Ledger<'a> {
        Ledger { statements: self, session: database.session() }
    }
}

/// One session that runs the statements.
pub(crate) struct Ledger<'a> {
    pub(crate) statements: &'a Statements,
    pub(crate) session: Box<dyn Session>,
}

impl Ledger<'_> {
    pub(crate) fn claim_with(
        &mut self,
        key: &str,
        claim_id: Option<&str>,
        lease_ms: i64,
        fingerprint: Option<&str>,
        on_expired: &str,
    ) -> Answer<Option<Claimed>> {
        let parameters: [(&str, Value); 5] = [
            ("event_key", key.into()),
            ("claim_id", claim_id.into()),
            ("lease_ms", lease_ms.into()),
            ("fingerprint", fingerprint.into()),
            ("on_expired", on_expired.into()),
        ];
        let row = self.one("claim.sql", &parameters)?;
        Ok(row.map(|row| Claimed { path: row.text("path").unwrap(), fence: row.int("fence"), row }))
    }

    pub(crate) fn claim(&mut self, key: &str, claim_id: &str, lease_ms: i64) -> Answer<Claimed> {
        let claimed = self.claim_with(key, Some(claim_id), lease_ms, None, "retake")?;
        Ok(claimed.expect("a claim returns a row"))
    }

    pub(crate) fn complete(&mut self, key: &str, fence: i64, outcome: &str, bytes: &[u8]) -> Answer<bool> {
        let parameters: [(&str, Value); 6] = [
            ("event_key", key.into()),
            ("fence", fence.into()),
            ("outcome", outcome.into()),
            ("result_bytes", bytes.into()),
            ("result_type", "application/octet-stream".into()),
            ("result_status", 200.into()),
        ];
        Ok(self.one("complete.sql", &parameters)?.is_some())
    }

    pub(crate) fn fail(&mut self, key: &str, fence: i64) -> Answer<bool> {
        let parameters: [(&str, Value); 4] = [
            ("event_key", key.into()),
            ("fence", fence.into()),
            ("class", "timeout".into()),
            ("message", "no answer".into()),
        ];
        Ok(self.one("fail.sql", &parameters)?.is_some())
    }

    pub(crate) fn extend(&mut self, key: &str, fence: i64, lease_ms: i64) -> Answer<bool> {
        let parameters: [(&str, Value); 3] =
            [("event_key", key.into()), ("fence", fence.into()), ("lease_ms", lease_ms.into())];
        Ok(self.one("extend.sql", &parameters)?.is_some())
    }

    pub(crate) fn reset(&mut self, key: &str, fence: i64, status: &str, reason: &str) -> Answer<bool> {
        let parameters: [(&str, Value); 5] = [
            ("event_key", key.into()),
            ("fence", fence.into()),
            ("status", status.into()),
            ("reason", reason.into()),
            ("by", "ops".into()),
        ];
        Ok(self.one("reset.sql", &parameters)?.is_some())
    }

    pub(crate) fn get(&mut self, key: &str) -> Option<Entry> {
        self.one("get.sql", &[("event_key", key.into())]).unwrap()
    }

    pub(crate) fn purge(&mut self, keep_ms: i64) -> Vec<String> {
        let parameters: [(&str, Value); 2] = [("keep_ms", keep_ms.into()), ("limit", 1000.into())];
        let rows = self.session.query(self.statements.text("purge.sql"), &parameters).unwrap();
        rows.iter().map(|row| row.text("event_key").unwrap()).collect()
    }

    /// Makes every row older, as if that much time had passed.
    pub(crate) fn pass(&mut self, ms: i64) {
        let sql = match self.statements.dialect {
            Dialect::Postgres => format!(
                "UPDATE webhook_events SET locked_until = locked_until - {ms} * interval '1 millisecond', \
                 created_at = created_at - {ms} * interval '1 millisecond', \
                 updated_at = updated_at - {ms} * interval '1 millisecond', fence = fence - {ms} * 1000::bigint"
            ),
            Dialect::Sqlite => {
                let back = |column: &str| {
                    format!(
                        "{column} = strftime('%Y-%m-%d %H:%M:%f', julianday({column}) - {ms} / 86400000.0)"
                    )
                };
                let columns = ["locked_until", "created_at", "updated_at"].map(back).join(", ");
                format!("UPDATE webhook_events SET {columns}, fence = fence - {ms} * 1000")
            }
        };
        self.session.batch(&sql).unwrap();
    }

    /// The effect, as a row that says who did it.
    pub(crate) fn effect(&mut self, key: &str, fence: i64) -> Answer<()> {
        self.session.batch(&format!("INSERT INTO effects (event_key, fence) VALUES ('{key}', {fence})"))
    }

    pub(crate) fn effects(&mut self, key: &str) -> i64 {
        let sql = format!("SELECT count(*) AS n FROM effects WHERE event_key = '{key}'");
        self.session.query(&sql, &[]).unwrap()[0].int("n").unwrap()
    }

    fn one(&mut self, name: &str, parameters: &[(&str, Value)]) -> Answer<Option<Row>> {
        let rows = self.session.query(self.statements.text(name), parameters)?;
        assert!(rows.len() < 2, "{name} returned {} rows", rows.len());
        Ok(rows.into_iter().next())
    }
}
