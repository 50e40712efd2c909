//! The part of a key that makes it distinct: a scrambled number, so that keys come in no order, as the identifiers of
//! real senders do, and the time of sending, so that a receiver can tell how long a delivery took.

/// Bytes of a token: 16 hexadecimal digits, `-`, 16 decimal digits.
pub(super) const LEN: usize = 33;

/// What stands in a template where a token will.
pub(super) const BLANK: &str = "0000000000000000-0000000000000000";

/// Odd, so that multiplying by it maps no two numbers to one: 2⁶⁴ divided by the golden ratio.
const SCRAMBLE: u64 = 0x9E37_79B9_7F4A_7C15;

/// Writes the token of request `number` of the load process `salt`, sent at `now_us`, over `place`.
pub(super) fn write(place: &mut [u8], salt: u64, number: u64, now_us: u64) {
    let distinct = (salt << 40 | number).wrapping_mul(SCRAMBLE);
    for (at, byte) in place[..16].iter_mut().enumerate() {
        let four = (distinct >> (60 - 4 * at)) & 15;
        *byte = b"0123456789abcdef"[usize::try_from(four).expect("four bits")];
    }
    place[16] = b'-';
    let mut rest = now_us;
    for byte in place[17..LEN].iter_mut().rev() {
        *byte = b'0' + u8::try_from(rest % 10).expect("a digit");
        rest /= 10;
    }
}

/// The time in a token that ends at the last `:` of an event id (`{key}:{destination}`).
pub(super) fn sent_us(event_id: &[u8]) -> Option<u64> {
    let end = event_id.iter().rposition(|byte| *byte == b':')?;
    let digits = event_id.get(end.checked_sub(16)?..end)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Another salt each time: the keys of several load processes on one store must differ.
pub(super) fn new_salt() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn token(salt: u64, number: u64) -> String {
        let mut place = BLANK.as_bytes().to_vec();
        write(&mut place, salt, number, 1_790_000_000_123_456);
        String::from_utf8(place).unwrap()
    }

    #[test]
    fn tokens_are_distinct_and_tell_when_they_were_sent() {
        let tokens: HashSet<String> =
            (0..3).flat_map(|salt| (0..1_000).map(move |number| token(salt, number))).collect();
        assert_eq!(3_000, tokens.len());
        let event_id = format!("github:{}:sink", token(1, 2));
        assert_eq!(Some(1_790_000_000_123_456), sent_us(event_id.as_bytes()));
        assert_eq!(None, sent_us(b"short:x"));
        assert_eq!(BLANK.len(), LEN);
    }
}
