//! Limits are part of the contract: a changed one must be looked at.

use std::fmt::Write;

use expect_test::expect;
use posthaste_core::{LaneId, MessageId, limits::*};

#[test]
fn the_limits_are_golden() {
    let mut text = String::new();
    macro_rules! list {
        ($($name:ident)+) => { $( writeln!(text, "{:<26}{:?}", stringify!($name), $name).unwrap(); )+ };
    }
    list! {
        KEY_BYTES_MAX DESTINATION_ID_CHARS_MAX EVENT_ID_BYTES_MAX PAYLOAD_BYTES_DEFAULT PAYLOAD_BYTES_CEILING
        TYPE_BYTES_MAX METADATA_BYTES_MAX CONTENT_TYPE_BYTES_MAX PUBLISH_BATCH_MAX PUBLISH_BATCH_BYTES_MAX
        ALIASES_MAX FANOUT_INLINE_MAX FANOUT_CHUNK JOBS_LISTED_MAX CONSUME_MAX CONSUME_BYTES_MAX CONSUME_WAIT_MAX
        LEASE_MIN LEASE_MAX CHECKPOINT_BYTES_MAX WORKER_BYTES_MAX REASON_BYTES_MAX ERROR_TEXT_BYTES_MAX
        EXCERPT_BYTES_MAX RESULT_BYTES_MAX RETRY_AFTER_MAX RETRY_AFTER_JITTER_MAX RELEASE_DELAY_BASE
        RELEASE_DELAY_MAX RETRY_DELAYS_MAX FENCE_BYTES_MAX TIMESTAMP_MAX PAGE_DEFAULT PAGE_MAX
        DUPLICATES_RECORDED_MAX FINGERPRINT_BYTES_MAX CLAIM_ID_BYTES_MAX
    }
    expect![[r#"
        KEY_BYTES_MAX             256
        DESTINATION_ID_CHARS_MAX  64
        EVENT_ID_BYTES_MAX        321
        PAYLOAD_BYTES_DEFAULT     262144
        PAYLOAD_BYTES_CEILING     16777216
        TYPE_BYTES_MAX            128
        METADATA_BYTES_MAX        8192
        CONTENT_TYPE_BYTES_MAX    256
        PUBLISH_BATCH_MAX         1000
        PUBLISH_BATCH_BYTES_MAX   4194304
        ALIASES_MAX               8
        FANOUT_INLINE_MAX         100
        FANOUT_CHUNK              100
        JOBS_LISTED_MAX           100
        CONSUME_MAX               1000
        CONSUME_BYTES_MAX         4194304
        CONSUME_WAIT_MAX          DurationMs(30000)
        LEASE_MIN                 DurationMs(1000)
        LEASE_MAX                 DurationMs(43200000)
        CHECKPOINT_BYTES_MAX      4096
        WORKER_BYTES_MAX          128
        REASON_BYTES_MAX          1024
        ERROR_TEXT_BYTES_MAX      1024
        EXCERPT_BYTES_MAX         4096
        RESULT_BYTES_MAX          65536
        RETRY_AFTER_MAX           DurationMs(86400000)
        RETRY_AFTER_JITTER_MAX    DurationMs(10000)
        RELEASE_DELAY_BASE        DurationMs(1000)
        RELEASE_DELAY_MAX         DurationMs(60000)
        RETRY_DELAYS_MAX          64
        FENCE_BYTES_MAX           128
        TIMESTAMP_MAX             Timestamp(253402300799999)
        PAGE_DEFAULT              50
        PAGE_MAX                  500
        DUPLICATES_RECORDED_MAX   100
        FINGERPRINT_BYTES_MAX     256
        CLAIM_ID_BYTES_MAX        128
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_jobs_id_takes_nothing_from_its_messages_last_32_bits() {
    let (first, last) = (MessageId(u128::MAX << 32), MessageId(u128::MAX));
    for lane in [0, 1, u32::MAX] {
        let job = posthaste_core::JobId::of(first, LaneId(lane));
        assert_eq!(job, posthaste_core::JobId::of(last, LaneId(lane)));
        assert_eq!(LaneId(lane), job.lane());
    }
    assert_eq!(first.job_range(), last.job_range());
}
