//! The ledger's statements as they are, in `psql` and `sqlite3`: many processes race for the same keys, some die on the
//! way, some are late.

use std::{fmt::Write as _, thread};

use crate::{
    chance::{self, Chance},
    database::Database,
    tools::play,
};

/// Processes at once.
const PROCESSES: u64 = 8;
/// Keys that all of them claim.
const KEYS: u64 = 30;
/// How often each process tries each key.
const ROUNDS: u64 = 3;

/// What a claimer does with its grant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// The effect and the report in one transaction.
    Complete,
    /// It rolls back and says that there was no effect.
    Fail,
    /// It dies after the effect and the report, before the commit.
    Die,
}

/// One claim and what follows.
struct Turn {
    key: String,
    token: String,
    lease_ms: u64,
    deed: Deed,
    claimer: u64,
}

/// The turns of one process, in an order of its own. Some leases end before anything is done.
fn turns(seed: u64, claimer: u64) -> Vec<Turn> {
    let mut chance = Chance::of(seed, &format!("claimer {claimer}"));
    let mut turns = Vec::new();
    for round in 0..ROUNDS {
        let first = chance.within(0..KEYS);
        for number in 0..KEYS {
            let key = (first + number) % KEYS;
            let deed = match chance.within(0..100) {
                0..70 => Deed::Complete,
                70..95 => Deed::Fail,
                _ => Deed::Die,
            };
            // What is left by the dead must be up for taking.
            let lease_ms = if deed == Deed::Die || chance.permille(400) { 0 } else { 60_000 };
            let token = format!("{claimer}-{round}-{key}");
            turns.push(Turn { key: format!("key:{key}"), token, lease_ms, deed, claimer });
        }
    }
    turns
}

/// A last claimer that dies at nothing and completes whatever is left.
fn last_turns() -> Vec<Turn> {
    let turn = |key| Turn {
        key: format!("key:{key}"),
        token: format!("last-{key}"),
        lease_ms: 60_000,
        deed: Deed::Complete,
        claimer: PROCESSES,
    };
    (0..KEYS).map(turn).collect()
}

/// Lets `run` play the turns of all processes at once, then the last ones, and checks that each key had one effect.
fn race(database: &Database, run: impl Fn(u64, &[Turn]) + Sync) {
    let seed = chance::seed();
    eprintln!("{}={seed}", chance::SEED);
    thread::scope(|scope| {
        for claimer in 0..PROCESSES {
            let run = &run;
            scope.spawn(move || run(claimer, &turns(seed, claimer)));
        }
    });
    run(PROCESSES, &last_turns());
    let count = |sql: &str| database.run(sql)[0].parse::<u64>().unwrap();
    assert_eq!(KEYS, count("SELECT count(DISTINCT event_key) FROM charges"), "an effect of each");
    assert_eq!(KEYS, count("SELECT count(*) FROM charges"), "and of none a second one");
    let stored = match database {
        Database::Postgres { .. } => "convert_from(result_bytes, 'UTF8')",
        Database::Sqlite { .. } => "CAST(result_bytes AS TEXT)",
    };
    let fitting = format!(
        "SELECT count(*) FROM charges JOIN webhook_events USING (event_key) \
         WHERE status = 'done' AND {stored} = CAST(amount AS TEXT)"
    );
    assert_eq!(KEYS, count(&fitting), "the stored answer is that of the effect");
    let attempts = count("SELECT sum(attempts) FROM webhook_events");
    eprintln!("{attempts} grants for {KEYS} keys");
    assert!(attempts > KEYS, "some keys were granted again");
}

#[test]
fn r_c7_psql_processes_that_race_for_a_key_have_one_effect() {
    let database = Database::postgres(chance::seed());
    late_reports_of_psql_find_no_row(&database);
    let levels = ["read committed", "repeatable read", "serializable"];
    race(&database, |claimer, turns| {
        let level = levels[usize::try_from(claimer).unwrap() % levels.len()];
        // A process that dies leaves the rest to its successor.
        let mut rest = turns;
        while !rest.is_empty() {
            let played = rest.iter().position(|turn| turn.deed == Deed::Die).map_or(rest.len(), |at| at + 1);
            let mut script = prepared(&database);
            writeln!(script, "SET default_transaction_isolation = '{level}';").unwrap();
            rest[..played].iter().for_each(|turn| psql_turn(&mut script, turn));
            // A grant that was refused may be the one of the turn that was to die.
            let ended = play(database.tool().args(["-v", "ON_ERROR_STOP=0"]), &script).status;
            assert!(ended.success() || ended.code().is_none(), "{ended}");
            rest = &rest[played..];
        }
    });
}

/// The statements under their names.
fn prepared(database: &Database) -> String {
    ["claim", "complete", "fail"]
        .map(|name| format!("PREPARE {name} AS\n{}\n", statement(database, name)))
        .concat()
}

fn statement(database: &Database, name: &str) -> String {
    let file = database.statements().join(name).with_extension("sql");
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// A statement that fails, as some do at the stricter levels, sets no variable. What is said to have failed after it was
/// done stays done; it is said at a level at which no other's commit refuses it.
fn psql_turn(script: &mut String, turn: &Turn) {
    let Turn { key, token, lease_ms, claimer, .. } = turn;
    let end = match turn.deed {
        Deed::Complete => "",
        Deed::Fail => "\\unset done_status",
        Deed::Die => "\\! kill -9 $PPID",
    };
    writeln!(
        script,
        "\\unset fence\n\\unset done_status\n\
         EXECUTE claim('{key}', '{token}', {lease_ms}, NULL, 'retake') \\gset\n\
         \\if :{{?fence}}\n\
         BEGIN;\n\
         INSERT INTO charges (event_key, amount) VALUES ('{key}', {claimer});\n\
         EXECUTE complete('{key}', :fence, 'committed', '{claimer}', 'text/plain', 200) \\gset done_\n\
         {end}\n\
         \\if :{{?done_status}}\nCOMMIT;\n\\else\nROLLBACK;\n\\endif\n\
         BEGIN ISOLATION LEVEL READ COMMITTED;\n\
         EXECUTE fail('{key}', :fence, 'test', 'perhaps rolled back');\nCOMMIT;\n\
         \\endif"
    )
    .unwrap();
}

fn late_reports_of_psql_find_no_row(database: &Database) {
    let script = prepared(database)
        + "EXECUTE claim('late', 'first', 0, NULL, 'retake') \\gset first_\n\
           EXECUTE claim('late', 'second', 0, NULL, 'retake') \\gset second_\n\
           EXECUTE complete('late', :first_fence, 'committed', 'first', 'text/plain', 200);\n\
           EXECUTE fail('late', :first_fence, NULL, NULL);\n\
           SELECT :'first_path', :'second_path', :'second_previous';\n\
           DELETE FROM webhook_events WHERE event_key = 'late';\n";
    let output = play(&mut database.tool(), &script);
    assert!(output.status.success(), "{output:?}");
    assert_eq!("first_run|retry_after_failure|expired\n", String::from_utf8(output.stdout).unwrap());
}

#[test]
fn r_c7_sqlite3_processes_that_race_for_a_key_have_one_effect() {
    let database = Database::sqlite();
    late_reports_of_sqlite3_find_no_row(&database);
    race(&database, |_, turns| turns.iter().for_each(|turn| sqlite3_turn(&database, turn)));
}

/// Claims in one process; the effect and the report are another's, in one transaction.
fn sqlite3_turn(database: &Database, turn: &Turn) {
    let Turn { key, token, lease_ms, claimer, .. } = turn;
    let parameters = format!(
        ".parameter set :event_key \"'{key}'\"\n.parameter set :claim_id \"'{token}'\"\n\
         .parameter set :lease_ms {lease_ms}\n.parameter set :on_expired \"'retake'\"\n"
    );
    let claimed = play(&mut database.tool(), &(parameters + &statement(database, "claim")));
    assert!(claimed.status.success(), "{claimed:?}");
    let row = String::from_utf8(claimed.stdout).unwrap();
    let mut columns = row.trim().split('|');
    let (path, fence) = (columns.next().unwrap(), columns.next().unwrap());
    if fence.is_empty() {
        assert!(["in_progress_elsewhere", "duplicate_done"].contains(&path), "{row}");
        return;
    }
    let grant = format!(".parameter set :event_key \"'{key}'\"\n.parameter set :fence {fence}\n");
    let script = match turn.deed {
        Deed::Fail => grant + &statement(database, "fail"),
        Deed::Complete | Deed::Die => format!(
            "{grant}.parameter set :outcome \"'committed'\"\n\
             .parameter set :result_bytes \"CAST('{claimer}' AS BLOB)\"\n\
             .parameter set :result_type \"'text/plain'\"\n.parameter set :result_status 200\n\
             CREATE TEMP TABLE counted (rows CHECK (rows = 1));\n\
             BEGIN IMMEDIATE;\n\
             INSERT INTO charges (event_key, amount) VALUES ('{key}', {claimer});\n\
             {}\n\
             INSERT INTO counted SELECT changes();\n\
             {}\n\
             COMMIT;\n",
            statement(database, "complete"),
            if turn.deed == Deed::Die { ".shell kill -9 $PPID" } else { "" }
        ),
    };
    let reported = play(&mut database.tool(), &script);
    let errors = String::from_utf8_lossy(&reported.stderr);
    // It stops at a report that finds no row, and its transaction ends with it.
    let late = errors.contains("CHECK constraint failed: rows = 1");
    assert!(reported.status.success() || late || turn.deed == Deed::Die, "{reported:?}");
}

fn late_reports_of_sqlite3_find_no_row(database: &Database) {
    let claim = |token: &str| {
        let script = format!(
            ".parameter set :event_key \"'late'\"\n.parameter set :claim_id \"'{token}'\"\n\
             .parameter set :lease_ms 0\n.parameter set :on_expired \"'retake'\"\n{}",
            statement(database, "claim")
        );
        let output = play(&mut database.tool(), &script);
        String::from_utf8(output.stdout).unwrap().split('|').map(str::to_owned).collect::<Vec<_>>()
    };
    let (first, second) = (claim("first"), claim("second"));
    assert_eq!(["first_run", "retry_after_failure"], [first[0].as_str(), second[0].as_str()]);
    for name in ["complete", "fail"] {
        let script = format!(
            ".parameter set :event_key \"'late'\"\n.parameter set :fence {}\n\
             .parameter set :outcome \"'committed'\"\n{}",
            first[1],
            statement(database, name)
        );
        let output = play(&mut database.tool(), &script);
        assert!(output.status.success() && output.stdout.is_empty(), "{name}: {output:?}");
    }
    database.run("DELETE FROM webhook_events WHERE event_key = 'late'");
}
