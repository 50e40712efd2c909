//! The judge of histories: an honest history passes, and one lie is found under its own name.

use posthaste_testkit::history::{
    Rule, judge,
    record::{
        Change, Consume, Delivery, End, FinalMessage, Handed, HarnessAt, JobLine, Publish, PublishAnswer,
        Record, Report, ReportAnswer, Response, ServerAt, ServerChange, ShownAttempt, ShownJob, Verb, Way,
        read, write_line,
    },
};

/// When the stories begin, in milliseconds.
const START_MS: i64 = 1_800_000_000_000;

/// The instant `ms` after the start, by the harness.
fn at(ms: i64) -> HarnessAt {
    HarnessAt((START_MS + ms) * 1_000)
}

/// The same by the server.
fn by_server(ms: i64) -> ServerAt {
    ServerAt(START_MS + ms)
}

fn publish(key: &str, destinations: &[&str], ms: i64, status: u16) -> Publish {
    let new = status == 202;
    let line = |destination: &&str| JobLine {
        job: format!("job_{key}_{destination}"),
        event_id: format!("{key}:{destination}"),
        state: "scheduled".to_owned(),
    };
    Publish {
        way: Way::Publish,
        key: key.to_owned(),
        destinations: destinations.iter().map(ToString::to_string).collect(),
        body_hash: format!("hash of {key}"),
        terms: "plain".to_owned(),
        delay_ms: None,
        due_at: None,
        invoked_at: at(ms),
        answer: Some(PublishAnswer {
            answered_at: at(ms + 2),
            status,
            code: None,
            path: Some(if new { "first_run" } else { "duplicate_done" }.to_owned()),
            message_id: Some(format!("msg_{key}")),
            jobs_total: Some(destinations.len() as u64),
            jobs: destinations.iter().map(line).collect(),
        }),
    }
}

fn unanswered(key: &str, destinations: &[&str], ms: i64) -> Publish {
    Publish { answer: None, ..publish(key, destinations, ms, 202) }
}

/// A lease of 1,000 ms of the job of `key` in the queue `carts`.
fn consume(key: &str, attempt: u64, ms: i64) -> Consume {
    let path = if attempt == 1 { "first_run" } else { "retry_after_failure" };
    Consume {
        worker: format!("w-{attempt}"),
        queue: "carts".to_owned(),
        invoked_at: at(ms - 1),
        answered_at: Some(at(ms + 1)),
        jobs: vec![Handed {
            job: format!("job_{key}_carts"),
            event_id: format!("{key}:carts"),
            key: key.to_owned(),
            message_id: format!("msg_{key}"),
            attempt,
            fence: format!("{attempt}.1"),
            path: path.to_owned(),
            body_hash: format!("hash of {key}"),
            scheduled_at: by_server(0),
            due_at: by_server(ms),
            leased_at: by_server(ms),
            lease_expires_at: by_server(ms + 1_000),
        }],
    }
}

fn report(verb: Verb, key: &str, attempt: u64, ms: i64, answer: (u16, &str)) -> Report {
    let (status, said) = answer;
    let outcome = match verb {
        Verb::Ack => Some("committed"),
        Verb::Reject => Some("failed"),
        Verb::Release => Some("released"),
        Verb::Extend => None,
    };
    Report {
        verb,
        job: format!("job_{key}_carts"),
        event_id: format!("{key}:carts"),
        attempt,
        fence: format!("{attempt}.1"),
        outcome: outcome.map(str::to_owned),
        gives_up: false,
        terms: String::new(),
        invoked_at: at(ms),
        answer: Some(ReportAnswer {
            answered_at: at(ms + 2),
            status,
            code: (status >= 400).then(|| said.to_owned()),
            state: (status < 400 && verb != Verb::Extend).then(|| said.to_owned()),
            due_at: None,
            lease_expires_at: (status < 400 && verb == Verb::Extend).then(|| by_server(ms + 2_000)),
        }),
    }
}

fn delivery(key: &str, endpoint: &str, attempt: u64, ms: i64, status: u16) -> Delivery {
    Delivery {
        endpoint: endpoint.to_owned(),
        webhook_id: format!("wh_{key}_{endpoint}"),
        event_id: format!("{key}:{endpoint}"),
        attempt,
        body_hash: format!("hash of {key}"),
        arrived_at: at(ms),
        response: Response { status: Some(status), written: true, retry_after_ms: None, at: at(ms + 1) },
    }
}

/// A job at the end: its attempts as (outcome, leased at, finished at).
fn job(key: &str, destination: &str, state: &str, attempts: &[(&str, i64, i64)]) -> ShownJob {
    let shown = |(number, (outcome, leased, finished)): (usize, &(&str, i64, i64))| ShownAttempt {
        attempt: number as u64 + 1,
        outcome: Some((*outcome).to_owned()),
        status: None,
        effect: Some("possible".to_owned()),
        due_at: by_server(*leased),
        leased_at: by_server(*leased),
        finished_at: Some(by_server(*finished)),
        next_at: None,
        late_outcome: None,
        commit_heard: false,
    };
    ShownJob {
        invoked_at: at(20_000),
        answered_at: at(20_001),
        job: format!("job_{key}_{destination}"),
        event_id: format!("{key}:{destination}"),
        key: key.to_owned(),
        message_id: format!("msg_{key}"),
        destination: destination.to_owned(),
        kind: if destination == "carts" { "pull" } else { "push" }.to_owned(),
        state: state.to_owned(),
        scheduled_at: by_server(0),
        attempts: attempts.iter().enumerate().map(shown).collect(),
    }
}

fn message(key: &str, jobs_total: u64) -> FinalMessage {
    FinalMessage {
        key: key.to_owned(),
        message_id: Some(format!("msg_{key}")),
        jobs_total,
        fanout: "done".to_owned(),
    }
}

/// What happens to one key, in the order in which the harness writes it down.
type Story = Vec<Record>;

/// `plain`: published twice, worked on once.
fn plain() -> Story {
    vec![
        Record::Publish(publish("plain", &["carts"], 0, 202)),
        Record::Publish(publish("plain", &["carts"], 10, 200)),
        Record::Consume(consume("plain", 1, 20)),
        Record::Report(report(Verb::Extend, "plain", 1, 30, (200, ""))),
        Record::Report(report(Verb::Ack, "plain", 1, 40, (200, "committed"))),
        Record::Report(report(Verb::Ack, "plain", 1, 60, (200, "committed"))),
        Record::Shown(job("plain", "carts", "committed", &[("committed", 20, 41)])),
        Record::FinalMessage(message("plain", 1)),
        Record::FinalJob(job("plain", "carts", "committed", &[("committed", 20, 41)])),
    ]
}

/// `stale`: the first worker lost its lease and reports after its successor has begun.
fn stale() -> Story {
    vec![
        Record::Publish(publish("stale", &["carts"], 0, 202)),
        Record::Consume(consume("stale", 1, 20)),
        Record::Consume(consume("stale", 2, 1_100)),
        Record::Report(report(Verb::Ack, "stale", 1, 1_200, (409, "stale_fence"))),
        Record::Report(report(Verb::Extend, "stale", 1, 1_210, (409, "stale_fence"))),
        Record::Report(report(Verb::Ack, "stale", 2, 1_300, (200, "committed"))),
        Record::FinalMessage(message("stale", 1)),
        Record::FinalJob(job(
            "stale",
            "carts",
            "committed",
            &[("lease_lost", 20, 1_020), ("committed", 1_100, 1_301)],
        )),
    ]
}

/// `late`: the worker lost its lease, nobody began anew, and its report counted.
fn late() -> Story {
    let mut last = job("late", "carts", "committed", &[("lease_lost", 20, 1_020)]);
    last.attempts[0].late_outcome = Some("committed".to_owned());
    vec![
        Record::Publish(publish("late", &["carts"], 0, 202)),
        Record::Consume(consume("late", 1, 20)),
        Record::Report(report(Verb::Ack, "late", 1, 1_200, (200, "committed"))),
        Record::FinalMessage(message("late", 1)),
        Record::FinalJob(last),
    ]
}

/// `retried`: delivered to intake, rejected once, given back once, done.
fn retried() -> Story {
    let mut rejected = report(Verb::Reject, "retried", 1, 40, (200, "retryable"));
    if let Some(answer) = &mut rejected.answer {
        answer.due_at = Some(by_server(500));
    }
    let intake = Publish { way: Way::Intake, ..publish("retried", &["carts"], 0, 202) };
    vec![
        Record::Publish(Publish { answer: None, ..intake.clone() }),
        Record::Server(ServerChange { change: Change::Killed, at: at(5) }),
        Record::Server(ServerChange { change: Change::Started, at: at(7) }),
        Record::Publish(Publish { invoked_at: at(10), ..intake }),
        Record::Consume(consume("retried", 1, 20)),
        Record::Report(rejected.clone()),
        Record::Consume(consume("retried", 2, 500)),
        Record::Report(Report { invoked_at: at(510), ..rejected }),
        Record::Report(report(Verb::Release, "retried", 2, 520, (200, "scheduled"))),
        Record::Consume(consume("retried", 3, 600)),
        Record::Report(Report { answer: None, ..report(Verb::Ack, "retried", 3, 610, (0, "")) }),
        Record::FinalMessage(message("retried", 1)),
        Record::FinalJob(job(
            "retried",
            "carts",
            "committed",
            &[("failed", 20, 41), ("released", 500, 521), ("committed", 600, 611)],
        )),
    ]
}

/// `sent`: to two endpoints, of which one fails at first and another takes it unheard.
fn sent() -> Story {
    let mut to_a = job("sent", "a", "committed", &[("failed", 20, 22), ("committed", 1_100, 1_102)]);
    to_a.attempts[0].status = Some(503);
    to_a.attempts[0].next_at = Some(by_server(1_030));
    let mut busy = delivery("sent", "a", 1, 21, 503);
    busy.response.retry_after_ms = Some(1_000);
    vec![
        Record::Publish(publish("sent", &["a", "b"], 0, 202)),
        Record::Delivery(busy),
        Record::Delivery(delivery("sent", "b", 1, 22, 200)),
        Record::Server(ServerChange { change: Change::Died("after_send".to_owned()), at: at(23) }),
        Record::Server(ServerChange { change: Change::Started, at: at(50) }),
        Record::Delivery(delivery("sent", "a", 2, 1_101, 200)),
        Record::Delivery(delivery("sent", "b", 3, 1_121, 200)),
        Record::FinalMessage(message("sent", 2)),
        Record::FinalJob(to_a),
        Record::FinalJob(job(
            "sent",
            "b",
            "committed",
            &[("lease_lost", 20, 1_020), ("failed", 1_080, 1_090), ("committed", 1_120, 1_122)],
        )),
    ]
}

/// `delayed`: a second, asked for with a delay.
fn delayed() -> Story {
    let mut asked = publish("delayed", &["carts"], 0, 202);
    asked.delay_ms = Some(1_000);
    let mut handed = consume("delayed", 1, 1_010);
    handed.jobs[0].scheduled_at = by_server(1_001);
    let mut last = job("delayed", "carts", "dead_lettered", &[("failed", 1_010, 1_021)]);
    last.scheduled_at = by_server(1_001);
    let given_up =
        Report { gives_up: true, ..report(Verb::Reject, "delayed", 1, 1_020, (200, "dead_lettered")) };
    vec![
        Record::Publish(asked),
        Record::Consume(handed),
        Record::Report(given_up),
        Record::FinalMessage(message("delayed", 1)),
        Record::FinalJob(last),
    ]
}

/// `reused`: the same key with another content is refused; `nobody`: never answered, and never there.
fn refused() -> Story {
    let mut other = publish("reused", &["a"], 10, 422);
    "other".clone_into(&mut other.terms);
    if let Some(answer) = &mut other.answer {
        (answer.code, answer.path, answer.message_id) = (Some("key_reused".to_owned()), None, None);
        answer.jobs.clear();
    }
    vec![
        Record::Publish(publish("reused", &["a"], 0, 202)),
        Record::Publish(other),
        Record::Delivery(delivery("reused", "a", 1, 20, 200)),
        Record::Publish(unanswered("nobody", &["carts"], 30)),
        Record::FinalMessage(message("reused", 1)),
        Record::FinalMessage(FinalMessage { message_id: None, ..message("nobody", 0) }),
        Record::FinalJob(job("reused", "a", "committed", &[("committed", 19, 22)])),
    ]
}

fn honest() -> Story {
    let end = vec![Record::End(End { quiescence: true })];
    [plain(), stale(), late(), retried(), sent(), delayed(), refused(), end].concat()
}

#[track_caller]
fn holds(history: &[Record]) {
    let told: Vec<_> = judge(history).violations.iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{told:#?}");
}

/// Fails unless `lie` makes an honest history break `rule` and no other.
#[track_caller]
fn breaks(rule: Rule, lie: impl FnOnce(&mut Story)) {
    let mut history = honest();
    lie(&mut history);
    assert_ne!(honest(), history, "the lie changed nothing");
    let verdict = judge(&history);
    let told: Vec<_> = verdict.violations.iter().map(ToString::to_string).collect();
    assert_eq!(vec![rule], verdict.broken(), "{told:#?}");
    assert!(verdict.violations.iter().all(|violation| !violation.observations.is_empty()), "{told:#?}");
}

macro_rules! finders {
    ($($name:ident: $kind:ident => $type:ty;)*) => {
        $(
            /// The observation number `nth` of its kind that satisfies `which`.
            #[track_caller]
            fn $name(history: &mut Story, nth: usize, which: impl Fn(&$type) -> bool) -> &mut $type {
                let all = history.iter_mut().filter_map(|record| match record {
                    Record::$kind(it) => Some(it),
                    _ => None,
                });
                all.filter(|it| which(it)).nth(nth).expect("there is one")
            }
        )*
    };
}

finders! {
    publish_of: Publish => Publish;
    consume_of: Consume => Consume;
    report_of: Report => Report;
    delivery_of: Delivery => Delivery;
    final_job: FinalJob => ShownJob;
    final_message: FinalMessage => FinalMessage;
}

fn remove(history: &mut Story, which: impl Fn(&Record) -> bool) {
    history.retain(|record| !which(record));
}

fn is_final_job(record: &Record, event_id: &str) -> bool {
    matches!(record, Record::FinalJob(job) if job.event_id == event_id)
}

#[test]
fn an_honest_history_passes() {
    holds(&honest());
    let verdict = judge(&honest());
    let wanted = [
        ("keys.acknowledged", 7),
        ("publishes.unanswered", 2),
        ("publishes.known", 1),
        ("jobs.handed_out", 8),
        ("reports.stale", 2),
        ("deliveries.taken", 4),
        ("deliveries.taken_again", 1),
        ("server.killed", 1),
        ("jobs.final", 8),
    ];
    assert_eq!([""; 0], *verdict.seen.too_few(&wanted));
}

#[test]
fn an_empty_history_shows_nothing() {
    let verdict = judge(&[]);
    assert_eq!(["keys.acknowledged: 0 seen, 1 wanted"], *verdict.seen.too_few(&[("keys.acknowledged", 1)]));
}

#[test]
fn a_history_is_read_as_it_was_written() {
    let mut lines = Vec::new();
    for record in honest() {
        write_line(&record, &mut lines).unwrap();
    }
    assert_eq!(Ok(honest()), read(std::str::from_utf8(&lines).unwrap()));
    assert!(read("{\"observation\":\"end\",\"quiescence\":true}\n{}\n").unwrap_err().starts_with("line 2: "));
}

#[test]
fn every_rule_names_a_row() {
    for rule in Rule::ALL {
        assert!(rule.row().starts_with(|letter: char| ('A'..='G').contains(&letter)), "{rule}");
    }
}

#[test]
fn r_a4_an_acknowledged_message_that_is_gone_is_lost() {
    breaks(Rule::Lost, |history| {
        final_message(history, 0, |message| message.key == "plain").message_id = None;
    });
}

#[test]
fn r_a4_a_message_that_nobody_looked_for_is_lost() {
    breaks(Rule::Lost, |history| {
        remove(history, |record| matches!(record, Record::FinalMessage(message) if message.key == "late"));
    });
}

#[test]
fn r_a4_a_message_known_only_by_a_duplicates_answer_is_owed_too() {
    breaks(Rule::Lost, |history| {
        remove(
            history,
            |record| matches!(record, Record::Publish(one) if one.key == "plain" && one.invoked_at == at(0)),
        );
        final_message(history, 0, |message| message.key == "plain").message_id = None;
    });
}

#[test]
fn r_a4_b13_a_job_that_is_gone_is_lost() {
    breaks(Rule::Lost, |history| remove(history, |record| is_final_job(record, "sent:b")));
}

#[test]
fn r_a4_b13_a_fan_out_that_forgot_a_subscriber_lost_its_job() {
    breaks(Rule::Lost, |history| final_message(history, 0, |message| message.key == "sent").jobs_total = 1);
}

#[test]
fn r_a4_a_job_that_was_handed_out_and_is_not_known_is_lost() {
    breaks(Rule::Lost, |history| {
        let report =
            report_of(history, 0, |report| report.event_id == "stale:carts" && report.verb == Verb::Extend);
        report.answer.as_mut().unwrap().status = 404;
    });
}

#[test]
fn r_b15_a_job_that_is_never_done_is_found() {
    breaks(Rule::Unfinished, |history| {
        let job = final_job(history, 0, |job| job.event_id == "retried:carts");
        job.attempts[2].outcome = Some("lease_lost".to_owned());
        "retryable".clone_into(&mut job.state);
    });
}

#[test]
fn r_b15_without_quiescence_a_job_may_still_run() {
    let mut history = honest();
    let job = final_job(&mut history, 0, |job| job.event_id == "retried:carts");
    (job.attempts[2].outcome, job.attempts[2].finished_at) = (None, None);
    "leased".clone_into(&mut job.state);
    history.pop();
    history.push(Record::End(End { quiescence: false }));
    holds(&history);
}

#[test]
fn r_b13_a_fan_out_that_never_ends_is_found() {
    breaks(Rule::Unfinished, |history| {
        "running".clone_into(&mut final_message(history, 0, |message| message.key == "sent").fanout);
    });
}

#[test]
fn r_b13_what_nobody_published_is_a_ghost() {
    breaks(Rule::Ghost, |history| {
        history.insert(0, Record::Delivery(delivery("phantom", "a", 1, 30, 200)));
    });
    breaks(Rule::Ghost, |history| {
        history.insert(0, Record::FinalJob(job("phantom", "carts", "committed", &[("committed", 1, 2)])));
        history.insert(0, Record::Consume(consume("phantom", 1, 30)));
        history.insert(0, Record::Report(report(Verb::Ack, "phantom", 1, 31, (200, "committed"))));
    });
}

#[test]
fn r_b13_a_job_for_a_destination_that_nobody_named_is_a_ghost() {
    breaks(Rule::Ghost, |history| {
        history.insert(0, Record::Delivery(delivery("plain", "a", 1, 30, 200)));
    });
}

#[test]
fn r_a1_work_from_a_refused_delivery_is_a_ghost() {
    breaks(Rule::Ghost, |history| {
        let mut refused = publish("forged", &["a"], 10, 401);
        refused.answer.as_mut().unwrap().jobs.clear();
        history.insert(0, Record::Publish(refused));
        history.insert(0, Record::FinalJob(job("forged", "a", "scheduled", &[])));
        history.pop();
    });
}

#[test]
fn r_b11_other_bytes_are_found() {
    breaks(Rule::Payload, |history| {
        "other".clone_into(&mut delivery_of(history, 0, |sent| sent.event_id == "sent:b").body_hash);
    });
    breaks(Rule::Payload, |history| {
        "other".clone_into(&mut consume_of(history, 0, |_| true).jobs[0].body_hash);
    });
}

#[test]
fn r_a5_one_key_with_two_messages_is_found() {
    breaks(Rule::OneMessage, |history| {
        let publish = publish_of(history, 1, |publish| publish.key == "plain");
        publish.answer.as_mut().unwrap().message_id = Some("msg_other".to_owned());
    });
}

#[test]
fn r_a5_a_key_that_is_new_twice_is_found() {
    breaks(Rule::OneMessage, |history| {
        let publish = publish_of(history, 1, |publish| publish.key == "plain");
        let answer = publish.answer.as_mut().unwrap();
        (answer.status, answer.path) = (202, Some("first_run".to_owned()));
    });
}

#[test]
fn r_a5_a_key_that_is_new_after_it_was_known_is_found() {
    breaks(Rule::OneMessage, |history| {
        publish_of(history, 0, |publish| publish.key == "plain").invoked_at = at(15);
    });
}

#[test]
fn r_a5_two_jobs_for_one_destination_are_found() {
    breaks(Rule::OneMessage, |history| {
        let mut twin = job("plain", "carts", "committed", &[("committed", 20, 41)]);
        "job_twin".clone_into(&mut twin.job);
        history.insert(0, Record::FinalJob(twin));
    });
}

#[test]
fn r_a10_a_key_with_two_contents_is_found() {
    breaks(Rule::KeyReused, |history| {
        "other".clone_into(&mut publish_of(history, 1, |publish| publish.key == "plain").terms);
    });
}

#[test]
fn r_a10_an_equal_content_that_is_refused_is_found() {
    breaks(Rule::KeyReused, |history| {
        "plain".clone_into(&mut publish_of(history, 1, |publish| publish.key == "reused").terms);
    });
}

#[test]
fn r_a9_a_path_that_does_not_fit_its_status_is_found() {
    for (status, path) in [(202, "duplicate_done"), (200, "first_run"), (204, "first_run")] {
        breaks(Rule::Path, |history| {
            let publish = publish_of(history, 0, |publish| publish.key == "late");
            let answer = publish.answer.as_mut().unwrap();
            (answer.status, answer.path) = (status, Some(path.to_owned()));
        });
    }
}

#[test]
fn r_b3_an_attempt_given_to_two_workers_is_found() {
    breaks(Rule::AttemptTwice, |history| {
        let twin = consume_of(history, 0, |_| true).clone();
        history.insert(4, Record::Consume(Consume { worker: "w-other".to_owned(), ..twin }));
    });
}

#[test]
fn r_b3_an_attempt_twice_in_one_answer_is_found() {
    breaks(Rule::AttemptTwice, |history| {
        let jobs = &mut consume_of(history, 0, |_| true).jobs;
        jobs.push(jobs[0].clone());
    });
}

#[test]
fn r_b3_a_request_sent_twice_as_one_attempt_is_found() {
    breaks(Rule::AttemptTwice, |history| {
        let sent = delivery_of(history, 0, |sent| sent.event_id == "sent:b").clone();
        history.insert(0, Record::Delivery(sent));
    });
}

#[test]
fn r_b3_attempts_that_run_backwards_are_found() {
    breaks(Rule::AttemptOrder, |history| {
        delivery_of(history, 0, |sent| sent.event_id == "sent:b").arrived_at = at(1_130);
    });
    breaks(Rule::AttemptOrder, |history| {
        let later = consume_of(history, 0, |one| one.jobs[0].event_id == "stale:carts");
        (later.invoked_at, later.answered_at) = (at(1_110), Some(at(1_111)));
    });
}

#[test]
fn r_d1_a_webhook_id_that_changes_is_found() {
    breaks(Rule::Identity, |history| {
        "wh_new".clone_into(&mut delivery_of(history, 1, |sent| sent.event_id == "sent:b").webhook_id);
    });
}

#[test]
fn r_d1_a_webhook_id_of_two_events_is_found() {
    breaks(Rule::Identity, |history| {
        "wh_sent_b".clone_into(&mut delivery_of(history, 0, |sent| sent.event_id == "reused:a").webhook_id);
    });
}

#[test]
fn r_d1_an_event_that_comes_to_another_endpoint_is_found() {
    breaks(Rule::Identity, |history| {
        "b".clone_into(&mut delivery_of(history, 0, |sent| sent.event_id == "reused:a").endpoint);
    });
    breaks(Rule::Identity, |history| "other".clone_into(&mut consume_of(history, 0, |_| true).queue));
}

#[test]
fn r_b3_a_fence_of_two_attempts_is_found() {
    breaks(Rule::Fence, |history| {
        let second =
            consume_of(history, 0, |one| one.jobs[0].event_id == "stale:carts" && one.jobs[0].attempt == 2);
        "1.1".clone_into(&mut second.jobs[0].fence);
    });
}

#[test]
fn r_b3_a_stale_report_that_counts_is_found() {
    breaks(Rule::Stale, |history| {
        let report =
            report_of(history, 0, |report| report.event_id == "stale:carts" && report.verb == Verb::Extend);
        *report.answer.as_mut().unwrap() = ReportAnswer {
            answered_at: at(1_212),
            status: 200,
            code: None,
            state: None,
            due_at: None,
            lease_expires_at: None,
        };
    });
}

#[test]
fn r_b3_a_stale_report_is_found_by_the_servers_own_record() {
    breaks(Rule::Stale, |history| {
        let first = |one: &Record| matches!(one, Record::Consume(one) if one.jobs[0].event_id == "retried:carts" && one.jobs[0].attempt == 2);
        // Nobody heard of attempt 2, and the first report on attempt 1 came after it.
        remove(history, first);
        remove(history, |one| matches!(one, Record::Report(one) if one.verb == Verb::Release));
        remove(
            history,
            |one| matches!(one, Record::Report(one) if one.verb == Verb::Reject && one.invoked_at == at(40)),
        );
        let job = final_job(history, 0, |job| job.event_id == "retried:carts");
        job.attempts[1].outcome = Some("lease_lost".to_owned());
        report_of(history, 0, |report| report.verb == Verb::Reject && report.attempt == 1).invoked_at =
            at(560);
    });
}

#[test]
fn r_b3_a_refused_report_that_settles_the_job_is_found() {
    breaks(Rule::Stale, |history| {
        remove(
            history,
            |one| matches!(one, Record::Report(one) if one.event_id == "stale:carts" && one.attempt == 2),
        );
        let job = final_job(history, 0, |job| job.event_id == "stale:carts");
        job.attempts[1].outcome = Some("lease_lost".to_owned());
    });
}

#[test]
fn r_b3_a_refused_commit_that_was_heard_is_evidence() {
    let mut history = honest();
    remove(
        &mut history,
        |one| matches!(one, Record::Report(one) if one.event_id == "stale:carts" && one.attempt == 2),
    );
    let job = final_job(&mut history, 0, |job| job.event_id == "stale:carts");
    job.attempts[1].outcome = Some("lease_lost".to_owned());
    job.attempts[0].commit_heard = true;
    holds(&history);
}

#[test]
fn r_b3_a_commit_that_is_shown_as_heard_and_nobody_said_is_found() {
    breaks(Rule::Unearned, |history| {
        remove(history, |one| matches!(one, Record::Report(one) if one.event_id == "stale:carts"));
        let job = final_job(history, 0, |job| job.event_id == "stale:carts");
        job.attempts[1].outcome = Some("lease_lost".to_owned());
        job.attempts[0].commit_heard = true;
    });
}

#[test]
fn r_b3_a_repeated_report_with_another_answer_is_found() {
    breaks(Rule::Repeat, |history| {
        let again =
            report_of(history, 1, |report| report.event_id == "retried:carts" && report.verb == Verb::Reject);
        again.answer.as_mut().unwrap().due_at = Some(by_server(400));
    });
}

#[test]
fn r_b3_two_different_reports_that_both_count_are_found() {
    breaks(Rule::Repeat, |history| {
        "another result".clone_into(&mut report_of(history, 1, |report| report.verb == Verb::Ack).terms);
    });
}

#[test]
fn r_b3_a_holder_that_is_refused_is_found() {
    breaks(Rule::Refused, |history| {
        remove(
            history,
            |one| matches!(one, Record::Consume(one) if one.jobs[0].event_id == "stale:carts" && one.jobs[0].attempt == 2),
        );
        remove(
            history,
            |one| matches!(one, Record::Report(one) if one.event_id == "stale:carts" && one.attempt == 2),
        );
        let job = final_job(history, 0, |job| job.event_id == "stale:carts");
        job.attempts.pop();
        "retryable".clone_into(&mut job.state);
        history.pop();
    });
}

#[test]
fn r_b3_a_late_holder_may_be_refused_to_give_back_what_it_no_longer_has() {
    let mut history = honest();
    let late = report_of(&mut history, 0, |report| report.event_id == "late:carts");
    *late = report(Verb::Release, "late", 1, 1_200, (409, "lease_expired"));
    let job = final_job(&mut history, 0, |job| job.event_id == "late:carts");
    job.attempts[0].late_outcome = None;
    "retryable".clone_into(&mut job.state);
    history.pop();
    holds(&history);
}

#[test]
fn r_b3_a_settled_job_that_is_given_out_again_is_found() {
    breaks(Rule::Settled, |history| {
        history.insert(6, Record::Consume(consume("plain", 2, 2_000)));
        let job = final_job(history, 0, |job| job.event_id == "plain:carts");
        let mut again = job.attempts[0].clone();
        (again.attempt, again.outcome) = (2, Some("lease_lost".to_owned()));
        (again.leased_at, again.finished_at) = (by_server(2_000), Some(by_server(3_000)));
        job.attempts.push(again);
    });
}

#[test]
fn r_b3_a_settled_job_that_ends_otherwise_is_found() {
    breaks(Rule::Settled, |history| {
        let ended = job("plain", "carts", "cancelled", &[("committed", 20, 41)]);
        *final_job(history, 0, |job| job.event_id == "plain:carts") = ended;
        final_job(history, 0, |job| job.event_id == "plain:carts").attempts[0].late_outcome =
            Some("cancelled".to_owned());
    });
}

#[test]
fn r_b9_a_dead_letter_is_committed_only_if_a_commit_was_heard() {
    for (commit_heard, broken) in [(true, vec![]), (false, vec![Rule::Stale, Rule::Settled])] {
        let mut history = honest();
        let given_up = history.iter().position(|one| matches!(one, Record::Report(one) if one.gives_up));
        let owns_up = report(Verb::Ack, "delayed", 1, 1_100, (409, "already_reported"));
        history.insert(given_up.unwrap() + 1, Record::Report(owns_up));
        let job = final_job(&mut history, 0, |job| job.event_id == "delayed:carts");
        "committed".clone_into(&mut job.state);
        job.attempts[0].commit_heard = commit_heard;
        assert_eq!(broken, judge(&history).broken(), "{commit_heard}");
    }
}

#[test]
fn r_b4_a_state_that_no_attempt_explains_is_found() {
    breaks(Rule::Unearned, |history| {
        "cancelled".clone_into(&mut final_job(history, 0, |job| job.event_id == "reused:a").state);
    });
}

#[test]
fn r_b4_a_job_given_up_without_cause_is_found() {
    breaks(Rule::Unearned, |history| {
        report_of(history, 0, |report| report.event_id == "delayed:carts").gives_up = false;
    });
}

#[test]
fn r_b1_a_job_before_its_time_is_found() {
    breaks(Rule::Early, |history| {
        publish_of(history, 0, |publish| publish.key == "delayed").delay_ms = Some(1_200);
    });
    breaks(Rule::Early, |history| {
        publish_of(history, 0, |publish| publish.key == "reused").due_at = Some(by_server(100));
    });
    breaks(Rule::Early, |history| {
        consume_of(history, 0, |one| one.jobs[0].key == "delayed").jobs[0].due_at = by_server(1_011);
    });
}

#[test]
fn r_b5_a_retry_before_its_time_is_found() {
    breaks(Rule::Early, |history| {
        for report in history.iter_mut() {
            if let Record::Report(Report { answer: Some(answer), event_id, verb: Verb::Reject, .. }) = report
                && event_id == "retried:carts"
            {
                answer.due_at = Some(by_server(501));
            }
        }
    });
    breaks(Rule::Early, |history| {
        final_job(history, 0, |job| job.event_id == "sent:a").attempts[0].next_at = Some(by_server(1_101));
    });
}

#[test]
fn r_b5_a_retry_before_the_receivers_retry_after_is_found() {
    breaks(Rule::Early, |history| {
        delivery_of(history, 0, |sent| sent.event_id == "sent:a").response.retry_after_ms = Some(2_000);
    });
}

#[test]
fn r_b2_a_seventh_state_is_found() {
    breaks(Rule::States, |history| {
        publish_of(history, 0, |_| true).answer.as_mut().unwrap().jobs[0].state = "ready".to_owned();
    });
    breaks(Rule::States, |history| "again".clone_into(&mut consume_of(history, 0, |_| true).jobs[0].path));
}

#[test]
fn r_f2_an_attempt_that_is_not_recorded_is_found() {
    breaks(Rule::Attempts, |history| {
        final_job(history, 0, |job| job.event_id == "sent:b").attempts.remove(0);
    });
}

#[test]
fn r_f2_an_attempt_that_is_recorded_otherwise_is_found() {
    for (event_id, number, outcome) in [
        ("plain:carts", 0, "duplicate"), // acknowledged as committed
        ("stale:carts", 0, "failed"),    // nobody reported that counted
        ("retried:carts", 1, "failed"),  // released
        ("sent:a", 0, "released"),       // answered 503
        ("sent:b", 1, "duplicate"),      // nobody saw it
        ("reused:a", 0, "duplicate"),    // answered 200
    ] {
        breaks(Rule::Attempts, |history| {
            let job = final_job(history, 0, |job| job.event_id == event_id);
            job.attempts[number].outcome = Some(outcome.to_owned());
            if event_id == "reused:a" || event_id == "plain:carts" {
                assert_eq!("committed", job.state, "a duplicate commits too");
            }
        });
    }
}

#[test]
fn r_f2_a_commit_that_no_receiver_answered_is_found() {
    breaks(Rule::Attempts, |history| {
        delivery_of(history, 0, |sent| sent.event_id == "reused:a").response.status = Some(500);
    });
    breaks(Rule::Attempts, |history| {
        delivery_of(history, 0, |sent| sent.event_id == "reused:a").response.status = None;
    });
}

#[test]
fn r_b3_two_owners_of_one_lease_are_found() {
    breaks(Rule::TwoLeases, |history| {
        let first = consume_of(history, 0, |one| one.jobs[0].event_id == "stale:carts");
        first.jobs[0].lease_expires_at = by_server(1_101);
    });
}

#[test]
fn r_b3_a_lease_begun_in_the_extension_of_another_is_found() {
    breaks(Rule::TwoLeases, |history| {
        history.insert(0, Record::Report(report(Verb::Extend, "stale", 1, 900, (200, ""))));
    });
}
