//! Reads what `strace -f -yy` wrote.

/// One system call. `begun` and `ended` are places in the order in which the tracer saw things happen: the tracer holds
/// a thread at both, so what comes later in the trace came later.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// What the first argument, a descriptor, stands for: a path, or `TCP:[from->to]`.
    pub(crate) file: String,
    /// All that was written.
    pub(crate) bytes: Vec<u8>,
    pub(crate) begun: usize,
    /// None if the trace ends before.
    pub(crate) ended: Option<usize>,
    pub(crate) result: Option<i64>,
}

/// All calls whose first argument is a descriptor, in the order in which they began.
pub(crate) fn parse(text: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    // Where the call is that each thread is in.
    let mut open: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
    for (place, line) in text.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        let Some((_time, rest)) = rest.split_once(' ') else { continue };
        if let Some(resumed) = rest.strip_prefix("<... ") {
            if let Some(index) = open.remove(thread) {
                calls[index].ended = Some(place);
                calls[index].result = result(resumed);
            }
            continue;
        }
        let Some(mut call) = begun(rest, place) else { continue };
        if rest.ends_with("<unfinished ...>") {
            open.insert(thread, calls.len());
        } else {
            call.ended = Some(place);
            call.result = result(rest);
        }
        calls.push(call);
    }
    calls
}

/// `pwrite64(9</tmp/x/posthaste.db-wal>, "\0\1", 24, 32) = 24`
fn begun(text: &str, place: usize) -> Option<Call> {
    let (name, arguments) = text.split_once('(')?;
    let (_, named) = arguments.split_once('<')?;
    // A socket's name has `->` in it.
    let end = named.match_indices('>').find(|(at, _)| *at == 0 || named.as_bytes()[at - 1] != b'-')?.0;
    let (file, rest) = named.split_at(end);
    let bytes = strings(rest);
    Some(Call {
        name: name.to_owned(),
        file: file.to_owned(),
        bytes,
        begun: place,
        ended: None,
        result: None,
    })
}

fn result(text: &str) -> Option<i64> {
    let (_, result) = text.rsplit_once(" = ")?;
    result.split(' ').next()?.parse().ok()
}

/// What stands between quotes, one after the other, without the escapes of C.
fn strings(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes().peekable();
    while rest.by_ref().any(|byte| byte == b'"') {
        while let Some(byte) = rest.next() {
            match byte {
                b'"' => break,
                b'\\' => match rest.next() {
                    Some(digit @ b'0'..=b'7') => {
                        let mut value = u32::from(digit - b'0');
                        for _ in 0..2 {
                            let Some(digit) = rest.next_if(|byte| (b'0'..=b'7').contains(byte)) else {
                                break;
                            };
                            value = value * 8 + u32::from(digit - b'0');
                        }
                        bytes.push(u8::try_from(value).unwrap());
                    }
                    Some(b'n') => bytes.push(b'\n'),
                    Some(b'r') => bytes.push(b'\r'),
                    Some(b't') => bytes.push(b'\t'),
                    Some(b'v') => bytes.push(0x0B),
                    Some(b'f') => bytes.push(0x0C),
                    Some(other) => bytes.push(other),
                    None => break,
                },
                other => bytes.push(other),
            }
        }
    }
    bytes
}

#[test]
fn calls_are_put_together_over_interruptions() {
    let text = r#"7 10:00:00.1 pwrite64(9</x/posthaste.db-wal>, "\0\1\178\"\n", 6, 32) = 6
7 10:00:00.2 fdatasync(9</x/posthaste.db-wal> <unfinished ...>
8 10:00:00.3 writev(12<TCP:[127.0.0.1:1->127.0.0.1:52]>, [{iov_base="HTTP/1.1 ", iov_len=9}, {iov_base="202", iov_len=3}], 2) = 12
7 10:00:00.4 <... fdatasync resumed>)   = -1 EIO (Input/output error)
8 10:00:00.5 fdatasync(9</x/posthaste.db-wal> <unfinished ...>
7 10:00:00.6 --- SIGTERM {si_signo=SIGTERM} ---
7 10:00:00.7 +++ exited with 0 +++
"#;
    let calls = parse(text);
    let shown: Vec<_> = calls
        .iter()
        .map(|call| (call.name.as_str(), call.file.as_str(), call.begun, call.ended, call.result))
        .collect();
    assert_eq!(
        [
            ("pwrite64", "/x/posthaste.db-wal", 0, Some(0), Some(6)),
            ("fdatasync", "/x/posthaste.db-wal", 1, Some(3), Some(-1)),
            ("writev", "TCP:[127.0.0.1:1->127.0.0.1:52]", 2, Some(2), Some(12)),
            ("fdatasync", "/x/posthaste.db-wal", 4, None, None),
        ],
        *shown
    );
    assert_eq!(b"\0\x01\x0f8\"\n", &*calls[0].bytes);
    assert_eq!(b"HTTP/1.1 202", &*calls[2].bytes);
}
