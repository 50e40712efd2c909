//! What people want to hear of, beside jobs.

use posthaste_core::{DestinationId, TenantId, Timestamp};

use crate::Engine;

/// Something that somebody should know.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    /// An endpoint was disabled by a rule, or by its receiver.
    EndpointDisabled {
        /// Whose.
        tenant: TenantId,
        /// Which.
        endpoint: DestinationId,
        /// Why.
        reason: Box<str>,
    },
    /// An endpoint's circuit opened: nothing is sent to it for a while.
    CircuitOpened {
        /// Whose.
        tenant: TenantId,
        /// Which.
        endpoint: DestinationId,
        /// Until the next probe.
        until: Timestamp,
    },
    /// An endpoint's circuit closed: it answers again.
    CircuitClosed {
        /// Whose.
        tenant: TenantId,
        /// Which.
        endpoint: DestinationId,
    },
}

impl Engine {
    /// Says it where people look. A hint: what is lost here can be read from the rows.
    #[allow(clippy::unused_self)] // who publishes notices needs it
    pub(crate) fn notice(&self, notice: &Notice) {
        match notice {
            Notice::EndpointDisabled { tenant, endpoint, reason } => {
                tracing::error!(event = "endpoint_disabled", tenant = tenant.0, %endpoint, %reason);
            }
            Notice::CircuitOpened { tenant, endpoint, until } => {
                tracing::warn!(event = "circuit_opened", tenant = tenant.0, %endpoint, until_ms = until.0);
            }
            Notice::CircuitClosed { tenant, endpoint } => {
                tracing::info!(event = "circuit_closed", tenant = tenant.0, %endpoint);
            }
        }
    }
}
