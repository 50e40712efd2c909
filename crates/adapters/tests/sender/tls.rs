//! TLS: who is trusted, and receivers that fail at it.

use std::{sync::Arc, time::Duration};

use posthaste_adapters::sender::{GuardedSender, Protocols, SenderConfig, Trust};
use posthaste_core::TransportFault;
use posthaste_engine::ports::SendLimits;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::CertificateDer};
use tokio_rustls::TlsAcceptor;

use super::{
    AMPLE, Scripted, answered, config, guard, post,
    receiver::{Act, Receiver, answering},
    send, timed_out_unsent, unanswered,
};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A certificate authority of this test run, and a server certificate of it.
pub(crate) struct Authority {
    pub(crate) root: CertificateDer<'static>,
    pub(crate) server: ServerConfig,
}

impl Authority {
    pub(crate) fn vouching_for(names: &[&str], protocols: &[&[u8]]) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let chain = vec![certificate.der().clone()];
        let mut server = builder.with_no_client_auth().with_single_cert(chain, key.into()).unwrap();
        server.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Self { root: issuer.der().clone(), server }
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::new(self.server.clone()))
    }
}

/// A sender that trusts `roots` and finds every name on 127.0.0.1.
pub(crate) fn sender_trusting(roots: Vec<CertificateDer<'static>>, protocols: Protocols) -> GuardedSender {
    let config = SenderConfig { trust: Trust::Only { roots }, protocols, ..config() };
    let names = Scripted::addresses(&[&["127.0.0.1"]]);
    GuardedSender::with_names(guard(&["127.0.0.0/8"]), &config, names).unwrap()
}

fn https(host: &str, receiver: &Receiver) -> String {
    format!("https://{host}:{}/hook", receiver.address.port())
}

#[tokio::test]
async fn r_d3_a_trusted_receiver_is_spoken_to_and_its_connection_kept() {
    let authority = Authority::vouching_for(&["hooks.test", "127.0.0.1"], &[b"http/1.1"]);
    for host in ["hooks.test", "hooks.test.", "127.0.0.1"] {
        let receiver = Receiver::start_tls(authority.acceptor(), answering(OK, 2)).await;
        let sender = sender_trusting(vec![authority.root.clone()], Protocols::Http1AndHttp2);
        for _ in 0..2 {
            let answer = answered(send(&sender, post(https(host, &receiver), AMPLE)).await);
            assert_eq!((answer.status, answer.peer), (200, Some(receiver.address)));
        }
        assert_eq!(receiver.accepted(), 1);
    }
}

#[tokio::test]
async fn r_d3_an_untrusted_or_misnamed_receiver_is_a_tls_fault_and_nothing_was_sent() {
    let authority = Authority::vouching_for(&["hooks.test"], &[]);
    let stranger = Authority::vouching_for(&["hooks.test"], &[]);
    let receiver = Receiver::start_tls(authority.acceptor(), answering(OK, 1)).await;
    for (roots, host) in [
        (vec![], "hooks.test"),
        (vec![stranger.root], "hooks.test"),
        (vec![authority.root.clone()], "other.test"),
        (vec![authority.root.clone()], "127.0.0.1"),
    ] {
        let sender = sender_trusting(roots, Protocols::Http1AndHttp2);
        let outcome = send(&sender, post(https(host, &receiver), AMPLE)).await;
        assert_eq!(unanswered(&outcome), (TransportFault::Tls, false), "{outcome:?}");
    }
}

#[tokio::test]
async fn r_d3_the_systems_trust_is_extended_by_extra_roots_only_for_them() {
    let authority = Authority::vouching_for(&["hooks.test"], &[]);
    let receiver = Receiver::start_tls(authority.acceptor(), answering(OK, 1)).await;
    for (extra, trusted) in [(vec![authority.root.clone()], true), (Vec::new(), false)] {
        let config = SenderConfig { trust: Trust::System { extra }, ..config() };
        let names = Scripted::addresses(&[&["127.0.0.1"]]);
        let sender = GuardedSender::with_names(guard(&["127.0.0.0/8"]), &config, names);
        // A machine without a certificate store cannot build the second one.
        let Ok(sender) = sender else { continue };
        let outcome = send(&sender, post(https("hooks.test", &receiver), AMPLE)).await;
        if trusted {
            assert_eq!(answered(outcome).status, 200);
        } else {
            assert_eq!(unanswered(&outcome), (TransportFault::Tls, false));
        }
    }
}

#[tokio::test]
async fn r_d3_a_receiver_that_does_not_speak_tls_is_a_tls_fault_and_nothing_was_sent() {
    for script in [vec![Act::Write(OK.into())], vec![], vec![Act::Reset], vec![Act::Write(vec![0x16; 5])]] {
        let receiver = Receiver::start(vec![script.clone()]).await;
        let sender = sender_trusting(Vec::new(), Protocols::Http1Only);
        let outcome = send(&sender, post(https("hooks.test", &receiver), AMPLE)).await;
        assert_eq!(unanswered(&outcome), (TransportFault::Tls, false), "{script:?}: {outcome:?}");
    }
}

#[tokio::test]
async fn r_d3_a_handshake_without_end_is_a_time_out_and_nothing_was_sent() {
    let tls = SendLimits { tls_timeout: Duration::from_millis(200), ..AMPLE };
    let total = SendLimits { total_timeout: Duration::from_millis(200), ..AMPLE };
    for limits in [tls, total] {
        for act in [Act::AwaitEnd, Act::Drip(vec![0x16, 3, 3, 0x3f, 0xff, 2, 0, 0x3f, 0xfb, 3, 3])] {
            let mut receiver = Receiver::start(vec![vec![act]]).await;
            let sender = sender_trusting(Vec::new(), Protocols::Http1AndHttp2);
            let outcome = send(&sender, post(https("hooks.test", &receiver), limits)).await;
            timed_out_unsent(&outcome, "tls handshake");
            receiver.ended().await;
            assert_eq!(sender.open_connections(), 0);
        }
    }
}
