//! The classification, printed from the code. Source: REQUIREMENTS.md, row B4 and C10.

use std::fmt::Write;

use expect_test::expect;
use posthaste_core::{
    CLASS_RULES, Class, ClassRule, Classified, Disposition, Effect, Failure, Policy, Reading, RetryWish,
    RuleAt, RuleOf, Ruled, TransportFault, read_class, read_fault, read_status,
};

fn line(reading: Reading) -> String {
    match reading {
        Reading::Accepted => "accepted".to_owned(),
        Reading::Failed(Classified { class, effect, disposition }) => {
            format!("{class:<12}  {effect:<8}  {disposition}")
        }
    }
}

/// Every status that HTTP can carry and more, neighbours of one meaning together.
fn table(retry_after: bool) -> String {
    let mut text = String::new();
    let mut from = 0;
    for status in 0..=u16::MAX {
        let here = line(read_status(status, retry_after));
        if status == u16::MAX || here != line(read_status(status + 1, retry_after)) {
            let range = if from == status { format!("{from}") } else { format!("{from}-{status}") };
            writeln!(text, "{range:<10}{here}").unwrap();
            from = status.saturating_add(1);
        }
    }
    text
}

#[test]
fn r_b4_the_classification_of_statuses_is_golden() {
    expect![[r#"
        0-199     protocol      possible  retry
        200-299   accepted
        300-399   redirect      none      retry
        400       client_error  none      permanent_message
        401       client_error  none      permanent_destination
        402       client_error  none      retry
        403       client_error  none      permanent_destination
        404-405   client_error  none      retry
        406       client_error  none      permanent_message
        407       client_error  none      retry
        408       timeout       none      retry
        409       in_progress   none      in_progress
        410       client_error  none      gone
        411       client_error  none      permanent_message
        412       client_error  none      retry
        413-417   client_error  none      permanent_message
        418-421   client_error  none      retry
        422       client_error  none      permanent_message
        423-428   client_error  none      retry
        429       throttled     none      retry
        430       client_error  none      retry
        431       client_error  none      permanent_message
        432-499   client_error  none      retry
        500-599   server_error  possible  retry
        600-65535 protocol      possible  retry
    "#]]
    .assert_eq(&table(false));
}

#[test]
fn r_b4_retry_after_changes_the_reading_of_503_alone() {
    let differs = |&status: &u16| read_status(status, true) != read_status(status, false);
    assert_eq!(vec![503], (0..=u16::MAX).filter(differs).collect::<Vec<_>>());
    expect!["throttled     none      retry"].assert_eq(&line(read_status(503, true)));
}

#[test]
fn r_b4_every_class_has_exactly_one_rule() {
    let mut text = String::new();
    for &class in Class::ALL {
        assert_eq!(1, CLASS_RULES.iter().filter(|(known, ..)| *known == class).count(), "{class}");
        let read = read_class(class);
        assert_eq!(class, read.class);
        writeln!(text, "{}", line(Reading::Failed(read))).unwrap();
    }
    expect![[r#"
        timeout       possible  retry
        connect       none      retry
        reset         possible  retry
        dns           none      retry
        tls           none      retry
        blocked       none      retry
        throttled     none      retry
        in_progress   none      in_progress
        server_error  possible  retry
        client_error  none      permanent_message
        redirect      none      retry
        protocol      possible  retry
        worker        possible  retry
        lease_lost    possible  retry
        other         possible  retry
    "#]]
    .assert_eq(&text);
}

#[test]
fn r_c10_what_was_sent_may_have_had_its_effect() {
    use TransportFault::*;
    let mut text = String::new();
    for fault in [Dns, Connect, Tls, Timeout, Reset, Protocol] {
        for sent in [false, true] {
            let name = format!("{fault:?}{}", if sent { ", sent" } else { "" });
            writeln!(text, "{name:<16}  {}", line(Reading::Failed(read_fault(fault, sent)))).unwrap();
        }
    }
    expect![[r#"
        Dns               dns           none      retry
        Dns, sent         dns           possible  retry
        Connect           connect       none      retry
        Connect, sent     connect       possible  retry
        Tls               tls           none      retry
        Tls, sent         tls           possible  retry
        Timeout           timeout       none      retry
        Timeout, sent     timeout       possible  retry
        Reset             reset         none      retry
        Reset, sent       reset         possible  retry
        Protocol          protocol      none      retry
        Protocol, sent    protocol      possible  retry
    "#]]
    .assert_eq(&text);
}

#[test]
fn r_b4_the_reporters_wish_stands_over_the_table() {
    let mut text = String::new();
    for &disposition in Disposition::ALL {
        let classified = Classified { class: Class::Other, effect: Effect::None, disposition };
        let follows = |wish| Failure { wish, ..Failure::classified(classified, None) }.follows();
        assert_eq!(disposition, follows(RetryWish::ByTable));
        let (yes, no) = (follows(RetryWish::Yes), follows(RetryWish::No));
        writeln!(text, "{:<22}yes: {:<13}no: {no}", disposition.as_str(), yes.as_str()).unwrap();
    }
    expect![[r#"
        retry                 yes: retry        no: permanent_message
        in_progress           yes: in_progress  no: permanent_message
        permanent_message     yes: retry        no: permanent_message
        permanent_destination yes: retry        no: permanent_message
        gone                  yes: retry        no: gone
    "#]]
    .assert_eq(&text);
}

#[test]
fn r_b4_a_workers_failure_is_filled_in_from_the_table() {
    let left_out = Failure::of_worker(Class::Timeout, None, RetryWish::No, None);
    assert_eq!((Effect::Possible, Disposition::Retry), (left_out.effect, left_out.disposition));
    assert_eq!(RetryWish::No, left_out.wish);
    let said = Failure::of_worker(Class::Timeout, Some(Effect::None), RetryWish::ByTable, None);
    assert_eq!(Effect::None, said.effect);
}

/// Row B4, word for word.
#[test]
fn r_b4_every_status_that_the_row_names_means_what_it_says() {
    let disposition = |status| match read_status(status, false) {
        Reading::Accepted => None,
        Reading::Failed(read) => Some(read.disposition),
    };
    let retryable = [402, 404, 405, 407, 408, 421, 423, 424, 425, 426, 428, 429, 451, 499];
    for status in retryable.into_iter().chain(300..400).chain(500..600).chain([0, 99, 100, 199, 600, 999]) {
        assert_eq!(Some(Disposition::Retry), disposition(status), "{status} is retryable");
    }
    assert_eq!(Some(Disposition::InProgress), disposition(409));
    for status in [400, 406, 411, 413, 414, 415, 416, 417, 422, 431] {
        assert_eq!(Some(Disposition::PermanentMessage), disposition(status), "{status} is permanent");
    }
    for status in [401, 403] {
        assert_eq!(
            Some(Disposition::PermanentDestination),
            disposition(status),
            "{status} is the destination's"
        );
    }
    assert_eq!(Some(Disposition::Gone), disposition(410));
    for status in 200..300 {
        assert_eq!(None, disposition(status), "{status} is taken, whatever its body says");
    }
}

fn rule(of: RuleOf, follows: Disposition, effect: Option<Effect>) -> ClassRule {
    ClassRule { of, follows, effect, line: format!("{of:?}").into() }
}

fn ruled(policy: &Policy, status: u16) -> (Classified, Option<RuleAt>) {
    match policy.rule_status(status, false) {
        Ruled::Accepted => panic!("{status} is taken"),
        Ruled::Failed(ruling) => (ruling.classified, ruling.by),
    }
}

#[test]
fn r_b4_a_destinations_own_rule_stands_over_the_table_and_the_more_exact_over_the_less() {
    use Disposition::{Gone, InProgress, PermanentMessage, Retry};
    let classes = vec![
        rule(RuleOf::Class(Class::ServerError), Gone, None),
        rule(RuleOf::Statuses(400, 499), Retry, None),
        rule(RuleOf::Statuses(404, 404), PermanentMessage, None),
        rule(RuleOf::Statuses(500, 500), InProgress, Some(Effect::None)),
    ];
    let policy = Policy { classes, ..Policy::endpoint_default() };
    for (status, follows, effect, by) in [
        (404, PermanentMessage, Effect::None, Some(2)),
        (401, Retry, Effect::None, Some(1)),
        (500, InProgress, Effect::None, Some(3)),
        (501, Gone, Effect::Possible, Some(0)),
        (302, Retry, Effect::None, None),
    ] {
        let (classified, at) = ruled(&policy, status);
        let got = (classified.disposition, classified.effect, at);
        assert_eq!((follows, effect, by.map(RuleAt)), got, "{status}");
        let Reading::Failed(table) = read_status(status, false) else { panic!("{status}") };
        assert_eq!(table.class, classified.class, "the class stays: {status}");
    }
    assert_eq!(Ruled::Accepted, policy.rule_status(200, false));
    let ruling = policy.rule_class(Class::ServerError);
    assert_eq!((Some(RuleAt(0)), Gone), (ruling.by, ruling.classified.disposition));
}

#[test]
fn r_c10_a_rule_makes_no_effect_of_a_request_that_never_left() {
    let classes = vec![rule(RuleOf::Class(Class::Connect), Disposition::Retry, Some(Effect::Possible))];
    let policy = Policy { classes, ..Policy::endpoint_default() };
    assert_eq!(Effect::None, policy.rule_fault(TransportFault::Connect, false).classified.effect);
    assert_eq!(Effect::Possible, policy.rule_fault(TransportFault::Connect, true).classified.effect);
    let worker = |effect| Failure::of_worker_under(&policy, Class::Connect, effect, RetryWish::ByTable, None);
    assert_eq!(Effect::Possible, worker(None).effect);
    assert_eq!(Effect::None, worker(Some(Effect::None)).effect, "the reporter knows best");
}
