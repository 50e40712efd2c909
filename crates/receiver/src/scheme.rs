//! The names of the schemes. A scheme's rules are in the file of its name under `schemes`.

use std::fmt;
use std::str::FromStr;

/// How a provider signs. Named in configuration by [`Scheme::as_str`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// AWS SNS: RSA, by a certificate that the message names; verified by [`crate::SnsVerifier`].
    AwsSns,
    /// Convoy's simple signature: `X-Convoy-Signature`.
    ConvoySimple,
    /// Discord interactions: ed25519.
    Discord,
    /// GitHub: `X-Hub-Signature-256`.
    GitHub,
    /// HMAC of the body in a header of your choice; see [`crate::HmacOptions`].
    Hmac,
    /// HubSpot versions 1 and 2: a plain hash that begins with the secret.
    HubSpotV1V2,
    /// HubSpot version 3.
    HubSpotV3,
    /// Linear.
    Linear,
    /// Mailgun: signs only a timestamp and a token, both inside the JSON body.
    Mailgun,
    /// Paddle Billing.
    Paddle,
    /// SendGrid's event webhook: ECDSA P-256.
    SendGrid,
    /// Shopify.
    Shopify,
    /// Slack, version `v0`.
    Slack,
    /// Square.
    Square,
    /// Standard Webhooks with symmetric secrets (`v1`).
    StandardWebhooks,
    /// Standard Webhooks with ed25519 public keys (`v1a`).
    StandardWebhooksV1a,
    /// Stripe.
    Stripe,
    /// Svix: Standard Webhooks under `svix-*` header names.
    Svix,
    /// Twilio.
    Twilio,
}

impl Scheme {
    /// Every scheme, in the order of their names.
    pub const ALL: &'static [Self] = &[
        Self::AwsSns,
        Self::ConvoySimple,
        Self::Discord,
        Self::GitHub,
        Self::Hmac,
        Self::HubSpotV1V2,
        Self::HubSpotV3,
        Self::Linear,
        Self::Mailgun,
        Self::Paddle,
        Self::SendGrid,
        Self::Shopify,
        Self::Slack,
        Self::Square,
        Self::StandardWebhooks,
        Self::StandardWebhooksV1a,
        Self::Stripe,
        Self::Svix,
        Self::Twilio,
    ];

    /// The name used in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AwsSns => "aws_sns",
            Self::ConvoySimple => "convoy_simple",
            Self::Discord => "discord",
            Self::GitHub => "github",
            Self::Hmac => "hmac",
            Self::HubSpotV1V2 => "hubspot_v1_v2",
            Self::HubSpotV3 => "hubspot_v3",
            Self::Linear => "linear",
            Self::Mailgun => "mailgun",
            Self::Paddle => "paddle",
            Self::SendGrid => "sendgrid",
            Self::Shopify => "shopify",
            Self::Slack => "slack",
            Self::Square => "square",
            Self::StandardWebhooks => "standard_webhooks",
            Self::StandardWebhooksV1a => "standard_webhooks_v1a",
            Self::Stripe => "stripe",
            Self::Svix => "svix",
            Self::Twilio => "twilio",
        }
    }

    /// The distance from the clock that is tolerated unless configured; `None` where the scheme signs no time.
    pub fn default_tolerance_seconds(self) -> Option<u64> {
        match self {
            Self::StandardWebhooks
            | Self::StandardWebhooksV1a
            | Self::Svix
            | Self::Stripe
            | Self::Slack
            | Self::Discord
            | Self::SendGrid
            | Self::HubSpotV3 => Some(300),
            Self::Linear => Some(60),
            Self::Mailgun => Some(900),
            Self::Paddle => Some(5),
            // Its time is that of the publication, and it may retry for an hour: twice that, since a refusal loses the message.
            // Source: <https://docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html>.
            Self::AwsSns => Some(7_200),
            Self::ConvoySimple
            | Self::GitHub
            | Self::Hmac
            | Self::HubSpotV1V2
            | Self::Shopify
            | Self::Square
            | Self::Twilio => None,
        }
    }

    /// Whether the scheme signs the URL, letter for letter as the provider has it.
    pub fn signs_url(self) -> bool {
        matches!(self, Self::HubSpotV1V2 | Self::HubSpotV3 | Self::Square | Self::Twilio)
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Scheme {
    type Err = UnknownScheme;

    fn from_str(name: &str) -> Result<Self, UnknownScheme> {
        Self::ALL.iter().copied().find(|scheme| scheme.as_str() == name).ok_or(UnknownScheme)
    }
}

/// A scheme name that is not known; its message lists those that are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownScheme;

impl fmt::Display for UnknownScheme {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("unknown signature scheme; known are ")?;
        for (index, scheme) in Scheme::ALL.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(formatter, "{separator}{scheme}")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownScheme {}
