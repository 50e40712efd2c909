//! The table of the six states, printed from what the code does.

use std::{collections::BTreeSet, fmt::Write};

use crate::common::*;
use expect_test::expect;
use posthaste_core::{
    Answer, Attempt, Cause, Command, Effect, Entry, Evidence, FinishOutcome, LookUpVerdict, Nature,
    OnUnknown, Refusal, Start, State, StateName, Verdict,
};

/// One column: its name, and what the code does to a job of a row.
type Column = (&'static str, fn(&World) -> BTreeSet<String>);

const COLUMNS: [Column; 11] = [
    ("Lease", lease),
    ("Start", start),
    ("Extend", extend),
    ("Finish", finish),
    ("Fail", fail),
    ("Release", release),
    ("Expire", expire),
    ("Cancel", cancel),
    ("Settle", settle),
    ("Replay", replay),
    ("Resend", resend),
];

/// Jobs that stand for a state. Where an attempt ended, Expire ended it and no report has come: the table's late
/// reports are about these.
fn jobs_in(state: StateName) -> Vec<World> {
    let lost = |on_unknown| {
        let mut world = World::on_unknown(on_unknown);
        world.lose();
        world
    };
    match state {
        StateName::Scheduled => {
            let mut replayed = lost(OnUnknown::DeadLetter);
            replayed.replay(true).unwrap();
            vec![World::new(), replayed]
        }
        StateName::Leased => {
            let mut running = World::new();
            running.lease();
            let mut again = World::new();
            again.fail(failure(Effect::None));
            again.lease();
            let mut unstarted = World::new();
            unstarted.starts = Start::Fenced;
            unstarted.lease();
            vec![running, again, unstarted]
        }
        StateName::Retryable => vec![lost(OnUnknown::Retry), lost(RECONCILE)],
        StateName::Committed => {
            let mut settled = lost(OnUnknown::Retry);
            settled.tell(&Command::Settle { evidence: Evidence::Reconciled }).unwrap();
            vec![settled]
        }
        StateName::DeadLettered => {
            let mut spent = World::new();
            spent.lose_times(3);
            vec![lost(OnUnknown::DeadLetter), spent]
        }
        StateName::Cancelled => {
            let mut asked = World::new();
            asked.lease();
            asked.tell(&cancel_command()).unwrap();
            asked.expire();
            vec![asked]
        }
    }
}

fn fence(world: &World) -> posthaste_core::Fence {
    posthaste_core::Fence { epoch: world.epoch, attempt: world.job.attempt.unwrap_or(Attempt::FIRST) }
}

/// What a verdict comes to, in the table's words.
fn word(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Refused(Refusal::LeaseExpired) => "lease_expired".into(),
        Verdict::Refused(_) | Verdict::Recorded(_) => "-".into(),
        Verdict::Write(decision) => match decision.nature() {
            Nature::Late => "late".into(),
            Nature::Heard => "heard".into(),
            Nature::Plain | Nature::SettledInstead => decision.next().state.name().to_string(),
        },
    }
}

/// Each command on a copy of its own.
fn words(world: &World, commands: &[Command]) -> BTreeSet<String> {
    commands.iter().map(|command| word(&world.decide(command))).collect()
}

/// Only a worker that extends is told of its lease; whoever else comes without one is just refused.
fn plain(words: BTreeSet<String>) -> BTreeSet<String> {
    words.into_iter().map(|word| if word == "lease_expired" { "-".into() } else { word }).collect()
}

fn lease(world: &World) -> BTreeSet<String> {
    let mut due = world.clone();
    if let Some(due_at) = due.job.state.due_at() {
        due.now = due.now.max(due_at);
    }
    if let State::Retryable { next: posthaste_core::NextStep::LookUp, .. } = due.job.state {
        let (seen, asked_at) = (due.job.attempt, due.now);
        let absent = Command::LookUp {
            seen,
            asked_at,
            verdict: LookUpVerdict::Absent,
            settled_at: asked_at,
            said: None,
        };
        due.tell(&absent).unwrap();
    }
    let command = lease_command(Start::WithLease);
    let plain = word(&due.decide(&command));
    if plain != "leased" {
        return [plain].into();
    }
    let mut heard = due.clone();
    heard.job.attempt = heard.job.attempt.or(Some(Attempt::FIRST));
    heard.job.commit_heard = Some(Attempt::FIRST);
    let done = World { entry: Entry::Done, ..due.clone() };
    let off = World { entry: Entry::DoneCancelled, ..due };
    let instead: Vec<_> = [heard, done, off].iter().map(|world| word(&world.decide(&command))).collect();
    let mark = if instead == ["committed", "committed", "cancelled"] { "¹" } else { "" };
    [format!("{plain}{mark}")].into()
}

fn start(world: &World) -> BTreeSet<String> {
    let unstarted = matches!(&world.job.state, State::Leased(lease) if lease.started_at.is_none());
    if world.state() == StateName::Leased && !unstarted {
        return BTreeSet::new();
    }
    plain(words(world, &[Command::Start { fence: fence(world) }]))
}

fn extend(world: &World) -> BTreeSet<String> {
    words(world, &[extend_command(fence(world))])
}

fn finish(world: &World) -> BTreeSet<String> {
    let commands: Vec<_> =
        FinishOutcome::ALL.iter().map(|&outcome| finish_command(fence(world), outcome)).collect();
    plain(words(world, &commands))
}

fn fail(world: &World) -> BTreeSet<String> {
    let failures = [failure(Effect::None), failure(Effect::Possible), permanent()];
    plain(words(world, &failures.map(|failure| fail_command(fence(world), failure))))
}

fn release(world: &World) -> BTreeSet<String> {
    let words = plain(words(world, &[Command::Release { fence: fence(world) }]));
    words
        .into_iter()
        .map(|word| if word == "scheduled" || word == "retryable" { "waits".into() } else { word })
        .collect()
}

/// Each policy, with and without a cancel that was asked for: three ends, whose order has tests of its own.
fn expire(world: &World) -> BTreeSet<String> {
    let mut ends = BTreeSet::new();
    for on_unknown in [OnUnknown::Retry, RECONCILE, OnUnknown::DeadLetter] {
        for cancel_requested in [false, true] {
            let mut world = world.clone();
            world.policy.on_unknown = on_unknown;
            world.job.cancel_requested = cancel_requested;
            world.pass(DEADLINE);
            ends.insert(word(&world.decide(&Command::Expire)));
        }
    }
    named(&ends, "ended")
}

fn cancel(world: &World) -> BTreeSet<String> {
    words(world, &[cancel_command()])
        .into_iter()
        .map(|word| if world.state() == StateName::Leased { "asked".into() } else { word })
        .collect()
}

fn named(ends: &BTreeSet<String>, name: &str) -> BTreeSet<String> {
    if ends.len() == 1 && ends.contains("-") { ends.clone() } else { [name.to_owned()].into() }
}

fn settle(world: &World) -> BTreeSet<String> {
    let done = World { entry: Entry::Done, ..world.clone() };
    words(&done, &[Command::Settle { evidence: Evidence::Ledger }])
}

fn replay(world: &World) -> BTreeSet<String> {
    let command = |seen| Command::Replay { seen, assume_not_done: true, reason: "again".into() };
    let word = word(&world.decide(&command(world.job.attempt)));
    let other = world.decide(&command(Attempt::new(99)));
    let mark = if matches!(other, Verdict::Refused(Refusal::AttemptChanged { .. })) { "³" } else { "" };
    [format!("{word}{mark}")].into()
}

fn resend(world: &World) -> BTreeSet<String> {
    words(world, &[Command::Resend { seen: world.job.attempt, reason: "data lost".into() }])
}

/// One cell over all jobs of its row: what is written; or else the refusal, if all get the same one.
fn cell(jobs: &[World], probe: fn(&World) -> BTreeSet<String>) -> String {
    let all: BTreeSet<String> = jobs.iter().flat_map(probe).collect();
    let written: BTreeSet<_> =
        all.iter().filter(|word| !["-", "lease_expired"].contains(&word.as_str())).collect();
    match (written.len(), all.len()) {
        (0, 1) => all.into_iter().next().unwrap(),
        (0, _) => "-".into(),
        _ => {
            // In the order of the states; other words stand alone.
            let states = StateName::ALL.iter().map(ToString::to_string);
            let mut words: Vec<_> = states.filter(|state| written.contains(state)).collect();
            words.extend(written.into_iter().filter(|word| StateName::parse(word).is_none()).cloned());
            words.join("|")
        }
    }
}

fn print(rows: &[Vec<String>]) -> String {
    // ARCHITECTURE.md leaves three spaces after these.
    let gap = |column: usize| if ["Fail", "Cancel"].contains(&rows[0][column].as_str()) { 3 } else { 2 };
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap() + gap(column);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width(column) - cell.chars().count()));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn table(columns: &[Column]) -> String {
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(columns.iter().map(|(name, _)| (*name).to_owned()));
    for &state in StateName::ALL {
        let jobs = jobs_in(state);
        assert!(jobs.iter().all(|world| world.state() == state));
        let mut row = vec![state.to_string()];
        row.extend(columns.iter().map(|(_, probe)| cell(&jobs, *probe)));
        rows.push(row);
    }
    print(&rows)
}

#[test]
fn r_b2_the_transition_table_is_golden() {
    expect![[r#"
                       Lease    Start   Extend         Finish               Fail                      Release  Expire  Cancel      Settle     Replay      Resend
        scheduled      leased¹  -       -              late                 late                      -        -       cancelled   -          -           -
        leased         -        leased  leased         committed|cancelled  retryable|dead_lettered   waits    ended   asked       -          -           -
        retryable      leased¹  -       lease_expired  late                 late                      -        -       cancelled   committed  -           -
        committed      -        -       -              heard                -                         -        -       -           -          -           scheduled
        dead_lettered  -        -       lease_expired  late                 late                      -        -       cancelled   committed  scheduled³  -
        cancelled      -        -       -              heard                heard                     -        -       -           -          -           -
    "#]].assert_eq(&table(&COLUMNS));
}

/// A leased job ends dead-lettered however its attempt ends without success, and committed if it succeeds.
fn abandon(world: &World) -> BTreeSet<String> {
    let command = Command::Abandon { cause: Cause::EndpointGone };
    if world.state() != StateName::Leased {
        return words(world, &[command]);
    }
    let mut told = world.clone();
    assert_eq!(Ok(moved(StateName::Leased)), told.tell(&command));
    let ends = [
        fail_command(fence(&told), failure(Effect::Possible)),
        fail_command(fence(&told), permanent()),
        Command::Release { fence: fence(&told) },
        finish_command(fence(&told), FinishOutcome::Committed),
    ];
    let mut words: BTreeSet<_> = words(&told, &ends);
    told.pass(DEADLINE);
    words.insert(word(&told.decide(&Command::Expire)));
    [format!("then {}", words.into_iter().collect::<Vec<_>>().join("|"))].into()
}

fn look_up(world: &World) -> BTreeSet<String> {
    let (seen, asked_at) = (world.job.attempt, world.now);
    LookUpVerdict::ALL
        .iter()
        .map(|&verdict| {
            word(&world.decide(&Command::LookUp {
                seen,
                asked_at,
                verdict,
                settled_at: asked_at,
                said: None,
            }))
        })
        .collect()
}

#[test]
fn r_b2_the_columns_that_only_the_engine_uses_are_golden() {
    expect![[r#"
                       Abandon                       LookUp
        scheduled      dead_lettered                 -
        leased         then committed|dead_lettered  -
        retryable      dead_lettered                 retryable|committed
        committed      -                             -
        dead_lettered  -                             -
        cancelled      -                             -
    "#]]
    .assert_eq(&table(&[("Abandon", abandon), ("LookUp", look_up)]));
}

#[test]
fn r_b8_cancel_answers_cancelled_requested_or_too_late() {
    let mut lines = String::new();
    for &state in StateName::ALL {
        for mut world in jobs_in(state) {
            let Ok(Answer::Cancel(answer)) = world.tell(&cancel_command()) else { panic!("{state}") };
            writeln!(lines, "{state} -> {} ({})", world.state(), answer.as_str()).unwrap();
        }
    }
    expect![[r#"
        scheduled -> cancelled (cancelled)
        scheduled -> cancelled (cancelled)
        leased -> leased (requested)
        leased -> leased (requested)
        leased -> cancelled (cancelled)
        retryable -> cancelled (cancelled)
        retryable -> cancelled (cancelled)
        committed -> committed (too_late)
        dead_lettered -> cancelled (cancelled)
        dead_lettered -> cancelled (cancelled)
        cancelled -> cancelled (cancelled)
    "#]]
    .assert_eq(&lines);
}
