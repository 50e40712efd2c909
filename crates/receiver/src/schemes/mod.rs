//! One file for each scheme: which headers it reads, what bytes are signed, what it says about a delivery.

mod aws_sns;
mod convoy_simple;
mod discord;
mod github;
mod hmac;
mod hubspot_v1_v2;
mod hubspot_v3;
mod json;
mod linear;
mod mailgun;
mod paddle;
mod pairs;
mod sendgrid;
mod shopify;
mod slack;
mod square;
mod standard_webhooks;
mod standard_webhooks_v1a;
mod stripe;
mod svix;
mod twilio;

pub use aws_sns::{SnsKind, SnsMessage, SnsVerified, SnsVerifier};

use crate::timestamp::Window;
use crate::{
    BuildError, OptionError, Reason, Rejection, Request, Scheme, SecretError, Verified, VerifyOptions,
};

/// The rules of one scheme with the keys of one source.
pub(crate) trait Verify: Send + Sync {
    /// As [`crate::Verifier::verify`].
    fn verify<'a>(&self, request: &Request<'a>, now_unix_ms: i64) -> Result<Verified<'a>, Rejection>;
}

/// The rules of `scheme`, with keys prepared.
pub(crate) fn build(
    scheme: Scheme,
    secrets: &[&str],
    options: &VerifyOptions,
) -> Result<Box<dyn Verify>, BuildError> {
    let seconds = options.tolerance_seconds.or(scheme.default_tolerance_seconds()).unwrap_or_default();
    let (both_ways, ahead) = (Window::symmetric(seconds), Window::lenient_ahead(seconds));
    let rules = match scheme {
        Scheme::AwsSns => return Err(OptionError::NeedsCertificate.into()),
        Scheme::Hmac => {
            let settings = options.hmac.as_ref().ok_or(OptionError::MissingHmacOptions)?;
            return Ok(Box::new(hmac::BodyHmac::new(secrets, settings)?));
        }
        Scheme::ConvoySimple => {
            return Ok(Box::new(hmac::BodyHmac::new(
                secrets,
                &convoy_simple::settings(options.hmac.as_ref()),
            )?));
        }
        Scheme::StandardWebhooks => boxed(standard_webhooks::StandardWebhooks::new(secrets, both_ways)),
        Scheme::StandardWebhooksV1a => {
            boxed(standard_webhooks_v1a::StandardWebhooksV1a::new(secrets, both_ways))
        }
        Scheme::Svix => boxed(svix::Svix::new(secrets, both_ways)),
        Scheme::Stripe => boxed(stripe::Stripe::new(secrets, ahead)),
        Scheme::GitHub => boxed(github::GitHub::new(secrets)),
        Scheme::Shopify => boxed(shopify::Shopify::new(secrets)),
        Scheme::Slack => boxed(slack::Slack::new(secrets, both_ways)),
        Scheme::Square => boxed(square::Square::new(secrets)),
        Scheme::Discord => boxed(discord::Discord::new(secrets, both_ways)),
        Scheme::Linear => boxed(linear::Linear::new(secrets, both_ways)),
        Scheme::Mailgun => boxed(mailgun::Mailgun::new(secrets, both_ways)),
        Scheme::SendGrid => boxed(sendgrid::SendGrid::new(secrets, both_ways)),
        Scheme::Paddle => boxed(paddle::Paddle::new(secrets, ahead)),
        Scheme::HubSpotV3 => boxed(hubspot_v3::HubSpotV3::new(secrets, ahead)),
        Scheme::HubSpotV1V2 => boxed(hubspot_v1_v2::HubSpotV1V2::new(secrets)),
        Scheme::Twilio => boxed(twilio::Twilio::new(secrets)),
    }?;
    Ok(rules)
}

fn boxed(rules: Result<impl Verify + 'static, SecretError>) -> Result<Box<dyn Verify>, SecretError> {
    rules.map(|rules| Box::new(rules) as Box<dyn Verify>)
}

/// For providers that never send an empty body, and whose SDKs refuse one.
fn require_body(request: &Request<'_>) -> Result<(), Rejection> {
    if request.body.is_empty() {
        return Err(Rejection::new(Reason::MissingBody, "body is empty"));
    }
    Ok(())
}

/// The verdict as a `Result`, so that no caller can forget to look at a `bool`.
fn require_fit(fits: bool) -> Result<(), Rejection> {
    if fits { Ok(()) } else { Err(Rejection::mismatch()) }
}
