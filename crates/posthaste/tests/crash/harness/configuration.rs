//! What the server is told: queues with short leases, steady endpoints, a fleet for the fan-out, a source.

use std::{fmt::Write as _, net::SocketAddr, path::Path};

/// The secret of the source.
pub(crate) const GITHUB_SECRET: &str = "it's a secret to everybody";
/// The source.
pub(crate) const SOURCE: &str = "github";
/// The queues and their leases.
pub(crate) const QUEUES: [(&str, &str); 2] = [("carts", "1s"), ("parcels", "2s")];
/// How many endpoints get what is addressed to them.
pub(crate) const STEADY: u64 = 6;
/// To which the whole fleet subscribes.
pub(crate) const FAN_TYPE: &str = "fleet.moved";

/// A steady endpoint.
pub(crate) fn steady(number: u64) -> String {
    format!("steady_{number}")
}

/// An endpoint of the fleet.
pub(crate) fn fan(number: u64) -> String {
    format!("fan_{number}")
}

/// Budgets that no run exhausts, so that every job ends by what somebody said.
const RETRY: &str =
    "base = \"100ms\"\ncap = \"1s\"\nfailures_max = 1000\nlost_leases_max = 1000\nhorizon = \"1d\"\n";

/// Writes the configuration and its secrets into `folder`.
pub(crate) fn write(folder: &Path, port: u16, receiver: SocketAddr, subscribers: u64) {
    std::fs::write(folder.join("github.secret"), GITHUB_SECRET).unwrap();
    std::fs::write(folder.join("endpoint.secret"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let mut text = format!(
        "store = \"sqlite:posthaste.db\"\nlisten = \"127.0.0.1:{port}\"\n\
         [outbound]\nprivate_networks = [\"127.0.0.0/8\"]\n\
         [log]\nlevel = \"warn\"\nformat = \"json\"\n\
         [[source]]\nname = \"{SOURCE}\"\nscheme = \"github\"\nsecrets = [\"file:github.secret\"]\nto = {{ queue = \"{}\" }}\n",
        QUEUES[0].0
    );
    for (queue, lease) in QUEUES {
        write!(
            text,
            "[[queue]]\nname = \"{queue}\"\nlease = \"{lease}\"\nidempotent = true\n[queue.retry]\n{RETRY}"
        )
        .unwrap();
    }
    let mut endpoint = |id: String, types: &str| {
        write!(
            text,
            "[[endpoint]]\nid = \"{id}\"\nurl = \"http://{receiver}/{id}\"\n{types}secrets = [\"file:endpoint.secret\"]\n\
             timeout = \"1s\"\nidempotent = true\n[endpoint.retry]\n{RETRY}"
        )
        .unwrap();
    };
    (0..STEADY).for_each(|number| endpoint(steady(number), ""));
    (0..subscribers).for_each(|number| endpoint(fan(number), &format!("types = [\"{FAN_TYPE}\"]\n")));
    std::fs::write(folder.join("posthaste.toml"), text).unwrap();
}
