//! A job's state is written in few places, and a file of SQL holds one statement.
//!
//! It reads every `.sql` file there is, and SQL in string literals of the product, so that the rule cannot be
//! walked round.

use crate::{finding::Finding, rust_file::RustFile, tree::File};

/// Files that may write a job's state, in every store; a final `*` stands for anything.
const STATE_WRITERS: &[&str] = &["jobs_write*", "jobs_insert*", "jobs_done_write*", "jobs_done_insert"];
/// The tables whose [`STATE`] they may write.
const TABLES: &[&str] = &["jobs", "jobs_done"];
const STATE: &str = "state";
/// A folder whose files hold many statements.
const MIGRATIONS: &str = "migrations";
/// A migration that users run by hand.
const ADOPT: &str = "adopt.sql";

/// Rules for one `.sql` file.
pub(crate) fn check_file(file: &File) -> Vec<Finding> {
    let words = words(&file.text);
    let (folders, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let mut findings = Vec::new();
    if writes_state(&words)
        && !STATE_WRITERS.iter().any(|pattern| fits(pattern, name.trim_end_matches(".sql")))
    {
        findings.push(Finding::whole(
            &file.path,
            format!("writes a job's state: only {} may", STATE_WRITERS.join(".sql, ") + ".sql"),
        ));
    }
    let statements = words.split(|word| word == ";").filter(|statement| !statement.is_empty()).count();
    if statements != 1 && name != ADOPT && !folders.split('/').any(|folder| folder == MIGRATIONS) {
        findings.push(Finding::whole(&file.path, format!("holds {statements} statements, not one")));
    }
    findings
}

/// String literals of the product that write a job's state.
pub(crate) fn check_literals(file: &RustFile<'_>) -> Vec<Finding> {
    if file.is_test_file() {
        return Vec::new();
    }
    let wrong = file
        .literals
        .iter()
        .filter(|literal| writes_state(&words(literal.text.trim_matches(['r', '#', '"']))));
    wrong
        .map(|literal| Finding::at(file.path, literal.line, "writes a job's state outside the .sql files"))
        .collect()
}

fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(name == pattern, |start| name.starts_with(start))
}

/// Words and signs in lower case, without comments and string literals; names in double quotes count as words.
fn words(sql: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c == '_' || c.is_alphanumeric();
        let length = match first {
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '\'' => rest[1..].find('\'').map_or(rest.len(), |end| end + 2),
            _ if is_word(first) => {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                words.push(rest[..length].to_lowercase());
                length
            }
            _ if first.is_whitespace() || first == '"' => first.len_utf8(),
            _ => {
                words.push(first.to_string());
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    words
}

fn writes_state(words: &[String]) -> bool {
    (0..words.len()).any(|at| match words[at].as_str() {
        "update" => updates_state(&words[at + 1..]),
        "into" => inserts_state(&words[at + 1..]),
        _ => false,
    })
}

/// `rest` follows `UPDATE`: `[OR x | ONLY] [schema.]jobs [AS j] SET …`.
fn updates_state(rest: &[String]) -> bool {
    let rest = match rest.first().map(String::as_str) {
        Some("or") => rest.get(2..).unwrap_or_default(),
        Some("only") => &rest[1..],
        _ => rest,
    };
    after_table(rest)
        .is_some_and(|rest| sets_state(rest.split(|word| word == ";").next().unwrap_or_default()))
}

/// `rest` follows `INTO`: the columns name the state, or there are none, which means all of them.
fn inserts_state(rest: &[String]) -> bool {
    let Some(rest) = after_table(rest) else { return false };
    let statement = rest.split(|word| word == ";").next().unwrap_or_default();
    match statement.iter().position(|word| ["(", "select", "values", "default"].contains(&word.as_str())) {
        Some(open) if statement[open] == "(" => {
            let columns = statement[open..].split(|word| word == ")").next().unwrap_or_default();
            columns.iter().any(|word| word == STATE) || sets_state(statement)
        }
        _ => true,
    }
}

/// What follows the table's name, if it is one of [`TABLES`].
fn after_table(rest: &[String]) -> Option<&[String]> {
    let rest = if rest.get(1).is_some_and(|word| word == ".") { &rest[2..] } else { rest };
    TABLES.contains(&rest.first()?.as_str()).then(|| &rest[1..])
}

/// Whether the assignments after `SET` name the state on their left: `SET a = 1, state = 2`, `SET (a, state) = …`.
fn sets_state(statement: &[String]) -> bool {
    let Some(set) = statement.iter().position(|word| word == "set") else { return false };
    let (mut depth, mut on_the_left) = (0_usize, true);
    for word in &statement[set + 1..] {
        match word.as_str() {
            "(" => depth += 1,
            ")" | "where" | "from" | "returning" if depth == 0 => return false,
            ")" => depth -= 1,
            "," if depth == 0 => on_the_left = true,
            "=" if depth == 0 => on_the_left = false,
            STATE if on_the_left => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, sql: &str) -> usize {
        check_file(&File { path: format!("crates/store/src/sqlite/{path}"), text: sql.to_owned() }).len()
    }

    #[test]
    fn a_state_written_elsewhere_is_found_however_it_is_spelt() {
        for sql in [
            "UPDATE jobs SET state = 'leased' WHERE id = ?1",
            "update or ignore main.\"jobs\" as j\n  set due_at = ?1, -- why\n  state = ?2",
            "UPDATE ONLY jobs SET (due_at, state) = (?1, ?2)",
            "WITH t AS (UPDATE jobs SET attempt = attempt + 1, state = ?1 RETURNING id) SELECT id FROM t",
            "INSERT INTO jobs (id, state) VALUES (?1, ?2)",
            "INSERT INTO jobs_done SELECT * FROM jobs WHERE id = ?1",
            "INSERT INTO jobs VALUES (?1)",
            "INSERT INTO jobs (id) VALUES (?1) ON CONFLICT (id) DO UPDATE SET state = 'scheduled'",
        ] {
            assert_eq!(findings("sql/jobs_sweep.sql", sql), 1, "{sql}");
            assert_eq!(findings("sql/jobs_write_lease.sql", sql), 0, "{sql}");
            assert_eq!(findings("sql/jobs_insert.sql", sql), 0, "{sql}");
            assert_eq!(findings("sql/jobs_insert_new.sql", sql), 0, "{sql}");
        }
    }

    #[test]
    fn reading_a_state_is_no_writing() {
        for sql in [
            "SELECT state FROM jobs WHERE state = 'leased' FOR UPDATE SKIP LOCKED",
            "SELECT id FROM jobs FOR UPDATE OF jobs",
            "UPDATE jobs SET due_at = CASE WHEN state = 1 THEN 2 ELSE 3 END, a = (b = 1) WHERE state = 'leased'",
            "UPDATE jobs SET due_at = ?1 RETURNING state",
            "UPDATE endpoints SET state = 'open'",
            "INSERT INTO jobs_hints (id, state) VALUES (?1, ?2)",
            "DELETE FROM jobs WHERE state = 'committed' -- UPDATE jobs SET state",
        ] {
            assert_eq!(findings("sql/jobs_sweep.sql", sql), 0, "{sql}");
        }
    }

    #[test]
    fn a_file_holds_one_statement() {
        assert_eq!(findings("sql/a.sql", "SELECT ';' -- ;\n;\n"), 0);
        assert_eq!(findings("sql/a.sql", "SELECT 1; SELECT 2"), 1);
        assert_eq!(findings("sql/a.sql", "-- nothing"), 1);
        assert_eq!(findings("migrations/V1__start.sql", "CREATE TABLE a (b); CREATE TABLE c (d);"), 0);
    }

    #[test]
    fn sql_in_a_string_is_no_way_round() {
        let text = "fn a() { run(\"UPDATE jobs SET state = 1\"); run(r#\"SELECT state FROM jobs\"#) }\n\
            #[cfg(test)] mod tests { fn b() { run(\"UPDATE jobs SET state = 1\"); } }\n";
        let file = |path: &str| File { path: path.to_owned(), text: text.to_owned() };
        assert_eq!(check_literals(&RustFile::new(&file("crates/store/src/sqlite.rs"))).len(), 1);
        assert_eq!(check_literals(&RustFile::new(&file("crates/store/tests/sqlite.rs"))).len(), 0);
    }
}
