//! Says which answers left before what they rest on was synced. Pure.
//!
//! Every request carries a mark that ends up in a row: `mk000017q`. A commit is a run of frames in the write-ahead log,
//! of which the last says so; the first commit with a mark is the one that an answer with this mark rests on.

use std::collections::HashMap;

use crate::trace::Call;

/// The mark with this number.
pub(crate) fn mark(number: u32) -> String {
    format!("mk{number:06}q")
}

/// What matters of a trace, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A frame is written to the log: it holds these marks, and ends a commit or not.
    Frame { ended: usize, marks: Vec<u32>, commits: bool },
    /// The log is synced, from when to when.
    Sync { begun: usize, ended: usize },
    /// An answer begins to leave for the client at this port.
    Answer { begun: usize, port: u16, status: u16 },
}

/// What a client was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) port: u16,
    pub(crate) status: u16,
    /// The mark of the rows that the answer rests on.
    pub(crate) rests_on: u32,
}

/// What matters of `calls`, in the order in which they began.
pub(crate) fn events(calls: &[Call]) -> Vec<Event> {
    let mut commits = None;
    let mut events = Vec::new();
    for call in calls {
        let to_log = call.file.ends_with("/posthaste.db-wal");
        match call.name.as_str() {
            "fdatasync" | "fsync" if to_log => {
                if let (Some(ended), Some(0)) = (call.ended, call.result) {
                    events.push(Event::Sync { begun: call.begun, ended });
                }
            }
            "pwrite64" | "write" if to_log => events.extend(frame(call, &mut commits)),
            "write" | "writev" | "sendto" | "sendmsg" if call.bytes.starts_with(b"HTTP/1.1 ") => {
                let status = std::str::from_utf8(&call.bytes[9..12]).unwrap().parse().unwrap();
                let peer = call.file.rsplit_once(':').unwrap().1.trim_end_matches(']');
                events.push(Event::Answer { begun: call.begun, port: peer.parse().unwrap(), status });
            }
            _ => {}
        }
    }
    events
}

/// A frame is a header of 24 bytes and then a page; `commits` is what the header said. The log's own header has 32.
fn frame(call: &Call, commits: &mut Option<bool>) -> Option<Event> {
    let written = call.result.and_then(|result| usize::try_from(result).ok());
    assert_eq!(Some(call.bytes.len()), written, "the trace cuts what is written: {call:?}");
    match call.bytes.len() {
        32 => None,
        24 => {
            *commits = Some(call.bytes[4..8] != [0; 4]);
            None
        }
        4096 => {
            let commits = commits.take().expect("a page follows its header");
            Some(Event::Frame { ended: call.ended.unwrap(), marks: marks(&call.bytes), commits })
        }
        other => panic!("{other} bytes in the log are neither a header nor a page"),
    }
}

fn marks(page: &[u8]) -> Vec<u32> {
    let mark = |nine: &[u8]| -> Option<u32> {
        let digits = nine.strip_prefix(b"mk")?.strip_suffix(b"q")?;
        digits.iter().all(u8::is_ascii_digit).then(|| std::str::from_utf8(digits).unwrap().parse().unwrap())
    };
    page.windows(9).filter_map(mark).collect()
}

/// Every answer that left too early, in words; or that the trace and the clients don't agree.
pub(crate) fn violations(events: &[Event], answered: &[Answered]) -> Vec<String> {
    let committed_at = committed_at(events);
    let mut left: HashMap<u16, Vec<(usize, u16)>> = HashMap::new();
    for event in events {
        if let Event::Answer { begun, port, status } = event {
            left.entry(*port).or_default().push((*begun, *status));
        }
    }
    let mut left: HashMap<_, _> = left.into_iter().map(|(port, all)| (port, all.into_iter())).collect();
    let mut violations = Vec::new();
    for answer in answered {
        // On one connection, answers come in the order of the requests.
        let Some((begun, status)) = left.get_mut(&answer.port).and_then(Iterator::next) else {
            violations.push(format!("{answer:?} is not in the trace"));
            continue;
        };
        if status != answer.status {
            violations.push(format!("{answer:?} is {status} in the trace"));
        }
        let Some(committed) = committed_at.get(&answer.rests_on) else {
            violations.push(format!("{answer:?} left at {begun}, and what it rests on was never committed"));
            continue;
        };
        let covered = events.iter().any(
            |event| matches!(event, Event::Sync { begun: from, ended } if from > committed && *ended < begun),
        );
        if !covered {
            violations.push(format!("{answer:?} left at {begun}, and no sync since {committed} was done"));
        }
    }
    violations
}

/// When the first commit with each mark was written whole.
fn committed_at(events: &[Event]) -> HashMap<u32, usize> {
    let mut committed_at = HashMap::new();
    let mut running: Vec<u32> = Vec::new();
    for event in events {
        if let Event::Frame { ended, marks, commits } = event {
            running.extend(marks);
            if *commits {
                for mark in running.drain(..) {
                    committed_at.entry(mark).or_insert(*ended);
                }
            }
        }
    }
    committed_at
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: bool = true;

    fn frame(ended: usize, marks: &[u32], commits: bool) -> Event {
        Event::Frame { ended, marks: marks.to_vec(), commits }
    }

    fn check(events: &[Event], expected: &[&str]) {
        let answered = [Answered { port: 1, status: 202, rests_on: 7 }];
        let violations = violations(events, &answered);
        assert_eq!(expected.len(), violations.len(), "{violations:?}");
        for (violation, expected) in violations.iter().zip(expected) {
            assert!(violation.contains(expected), "{violation}");
        }
    }

    #[test]
    fn an_answer_after_its_sync_is_in_order() {
        let answer = Event::Answer { begun: 9, port: 1, status: 202 };
        check(
            &[frame(1, &[7], false), frame(2, &[], COMMIT), Event::Sync { begun: 3, ended: 5 }, answer],
            &[],
        );
    }

    #[test]
    fn an_answer_before_its_sync_ended_is_noticed() {
        let answer = || Event::Answer { begun: 4, port: 1, status: 202 };
        let early = "left at 4, and no sync since 2 was done";
        check(&[frame(2, &[7], COMMIT), Event::Sync { begun: 3, ended: 5 }, answer()], &[early]);
        check(&[frame(2, &[7], COMMIT), answer()], &[early]);
    }

    #[test]
    fn a_sync_that_began_before_the_commit_was_whole_covers_nothing() {
        let sync = Event::Sync { begun: 2, ended: 5 };
        let answer = Event::Answer { begun: 9, port: 1, status: 202 };
        let early = "no sync since 3 was done";
        check(&[frame(1, &[7], false), sync, frame(3, &[], COMMIT), answer], &[early]);
    }

    #[test]
    fn what_is_written_again_is_durable_since_the_first_time() {
        let answer = Event::Answer { begun: 9, port: 1, status: 202 };
        let sync = Event::Sync { begun: 3, ended: 5 };
        check(&[frame(2, &[7], COMMIT), sync, frame(7, &[7, 8], COMMIT), answer], &[]);
    }

    #[test]
    fn an_answer_that_rests_on_nothing_or_is_missing_is_noticed() {
        let answer = |status| Event::Answer { begun: 9, port: 1, status };
        let sync = || Event::Sync { begun: 3, ended: 5 };
        check(&[frame(2, &[8], COMMIT), sync(), answer(202)], &["never committed"]);
        check(&[frame(2, &[7], false), sync(), answer(202)], &["never committed"]);
        check(&[frame(2, &[7], COMMIT), sync()], &["is not in the trace"]);
        check(&[frame(2, &[7], COMMIT), sync(), answer(503)], &["is 503 in the trace"]);
    }

    #[test]
    fn frames_syncs_and_answers_are_found_in_a_trace() {
        let log = "9</x/posthaste.db-wal>";
        let page = format!("{}{}", "mk000007q..", r"\0".repeat(4096 - 11));
        let header = r"\0\0\0\1\0\0\0\11\1\2\3\4\1\2\3\4\1\2\3\4\1\2\3\4";
        let text = [
            format!(r#"7 t pwrite64({log}, "{}", 32, 0) = 32"#, "h".repeat(32)),
            format!(r#"7 t pwrite64({log}, "{header}", 24, 32) = 24"#),
            format!(r#"7 t pwrite64({log}, "{page}", 4096, 56) = 4096"#),
            format!("7 t fdatasync({log}) = -1 EIO (Input/output error)"),
            format!("7 t fdatasync({log}) = 0"),
            "7 t fdatasync(8</x/posthaste.db>) = 0".to_owned(),
            r#"8 t sendto(12<TCP:[127.0.0.1:1->127.0.0.1:52]>, "HTTP/1.1 202 Accepted\r\n", 23, 0, NULL, 0) = 23"#
                .to_owned(),
        ];
        let expected = [
            frame_of(2),
            Event::Sync { begun: 4, ended: 4 },
            Event::Answer { begun: 6, port: 52, status: 202 },
        ];
        assert_eq!(expected, *events(&crate::trace::parse(&text.join("\n"))));
    }

    fn frame_of(ended: usize) -> Event {
        frame(ended, &[7], COMMIT)
    }
}
