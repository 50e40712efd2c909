//! How long providers go on sending one delivery: what our memory of keys must outlast. Row C11.
//!
//! As their own pages said in 2026; a provider may change it. A person may send an old delivery again from the provider's
//! page for as long as that shows it, so more is better.

use posthaste_core::DurationMs;

/// How long one provider retries.
#[derive(Clone, Copy, Debug)]
pub struct Horizon {
    /// The scheme, as configured.
    pub scheme: &'static str,
    /// From the first try to the last, automatic or by hand.
    pub retries_for: DurationMs,
    /// In words.
    pub schedule: &'static str,
    /// Where it says so.
    pub source: &'static str,
}

/// Every provider whose schedule is known.
pub const HORIZONS: &[Horizon] = &[
    Horizon {
        // Its 23 days are for queues and functions of AWS. Over HTTP(S) it is 3 times, 20 seconds apart, unless the
        // subscription's own policy says more; that can't say more than an hour.
        scheme: "aws_sns",
        retries_for: DurationMs::from_mins(1),
        schedule: "3 times over 1 minute; by a delivery policy of yours, for up to 1 hour",
        source: "https://docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html",
    },
    Horizon {
        scheme: "github",
        retries_for: DurationMs::from_hours(72),
        schedule: "none by itself; by hand for 3 days",
        source: "https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries",
    },
    Horizon {
        scheme: "hubspot_v3",
        retries_for: DurationMs::from_hours(24),
        schedule: "10 times over 24 hours",
        source: "https://developers.hubspot.com/docs/api/webhooks",
    },
    Horizon {
        scheme: "linear",
        retries_for: DurationMs::from_mins(7 * 60 + 1),
        schedule: "after 1 minute, 1 hour and 6 hours",
        source: "https://linear.app/developers/webhooks",
    },
    Horizon {
        scheme: "mailgun",
        retries_for: DurationMs::from_hours(8),
        schedule: "for 8 hours",
        source: "https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhooks",
    },
    Horizon {
        scheme: "paddle",
        retries_for: DurationMs::from_hours(72),
        schedule: "60 times within 3 days",
        source: "https://developer.paddle.com/webhooks/respond-to-webhooks",
    },
    Horizon {
        scheme: "sendgrid",
        retries_for: DurationMs::from_hours(24),
        schedule: "for 24 hours",
        source: "https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook",
    },
    Horizon {
        scheme: "shopify",
        retries_for: DurationMs::from_hours(4),
        schedule: "8 times over 4 hours",
        source: "https://shopify.dev/docs/apps/build/webhooks/troubleshooting-webhooks",
    },
    Horizon {
        scheme: "slack",
        retries_for: DurationMs::from_hours(24),
        schedule: "at once, after 1 and 5 minutes; with delayed events, hourly for 24 hours",
        source: "https://docs.slack.dev/apis/events-api/",
    },
    Horizon {
        scheme: "square",
        retries_for: DurationMs::from_hours(24),
        schedule: "11 times over 24 hours",
        source: "https://developer.squareup.com/docs/webhooks/overview",
    },
    Horizon {
        scheme: "standard_webhooks",
        retries_for: DurationMs::from_mins(76 * 60),
        schedule: "as the specification suggests, over 75 hours 35 minutes",
        source: "https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md",
    },
    Horizon {
        scheme: "stripe",
        retries_for: DurationMs::from_hours(72),
        schedule: "for up to 3 days",
        source: "https://docs.stripe.com/webhooks",
    },
    Horizon {
        scheme: "svix",
        retries_for: DurationMs::from_mins(28 * 60),
        schedule: "7 times over 27 hours 35 minutes",
        source: "https://docs.svix.com/retries",
    },
];

/// How long the provider of a scheme retries, if that is known.
pub fn of_scheme(scheme: &str) -> Option<&'static Horizon> {
    HORIZONS.iter().find(|known| known.scheme == scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_c11_every_horizon_is_of_a_scheme_and_says_where_it_is_from() {
        for horizon in HORIZONS {
            assert!(horizon.source.starts_with("https://"), "{horizon:?}");
            let least = if horizon.scheme == "aws_sns" {
                DurationMs::from_mins(1)
            } else {
                DurationMs::from_hours(4)
            };
            assert!(horizon.retries_for >= least, "{horizon:?}");
            let known =
                posthaste_receiver::Scheme::ALL.iter().any(|scheme| scheme.as_str() == horizon.scheme);
            assert!(known, "{} is no scheme", horizon.scheme);
        }
        assert!(HORIZONS.is_sorted_by_key(|horizon| horizon.scheme));
    }
}
