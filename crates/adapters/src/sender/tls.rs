//! TLS: which certificates are trusted and which protocols are offered.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs, pki_types::CertificateDer};
use rustls_platform_verifier::Verifier;

/// Which certificate authorities vouch for receivers.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Those of the operating system, and `extra` ones such as a company's own.
    System {
        /// DER-encoded authorities to trust beside the system's.
        extra: Vec<CertificateDer<'static>>,
    },
    /// Only these; for images without a certificate store and for tests.
    Only {
        /// DER-encoded authorities.
        roots: Vec<CertificateDer<'static>>,
    },
}

/// Which versions of HTTP are offered to receivers. Plain http is always HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocols {
    /// HTTP/1.1 over TLS.
    Http1Only,
    /// HTTP/2 over TLS where the receiver speaks it, else HTTP/1.1.
    Http1AndHttp2,
}

/// The ALPN name of HTTP/2.
pub(super) const ALPN_H2: &[u8] = b"h2";

/// Builds the client's configuration on aws-lc-rs, whatever the process default is.
pub(super) fn client_config(trust: Trust, protocols: Protocols) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let mut config = match trust {
        Trust::System { extra } => {
            let verifier = Verifier::new_with_extra_roots(extra, provider)?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
        }
        Trust::Only { roots } => {
            let mut store = RootCertStore::empty();
            for root in roots {
                store.add(root)?;
            }
            builder.with_root_certificates(store).with_no_client_auth()
        }
    };
    config.alpn_protocols = match protocols {
        Protocols::Http1Only => vec![b"http/1.1".to_vec()],
        Protocols::Http1AndHttp2 => vec![ALPN_H2.to_vec(), b"http/1.1".to_vec()],
    };
    Ok(config)
}
