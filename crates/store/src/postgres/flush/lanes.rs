//! Lanes, scheduling, and what befell them.

use posthaste_core::{
    Lane, LaneId, TenantId,
    lane::{Circuit, Hold},
};

use super::write::Write;
use crate::{
    lanes::EVENTS_KEPT,
    postgres::{
        decode::SCHEDULING,
        params::Param,
        session::{Session, diff},
    },
};

type At<'t> = (&'t (TenantId, LaneId), &'t Lane);

impl Session<'_> {
    pub(super) fn write_lanes(&self, writes: &mut Vec<Write>) {
        let diff = diff(&self.base.lanes, &self.tables.lanes, PartialEq::eq);
        if !diff.new.is_empty() {
            let lanes: Vec<At<'_>> = diff.new.iter().map(|(at, row)| (*at, &row.lane)).collect();
            let mut params = names(&lanes);
            params.push(Param::texts(diff.new.iter().map(|(_, row)| row.destination.as_str())));
            params.extend(what_holds(&lanes));
            params.extend(what_happened(&lanes));
            writes.push(Write::claimed(lanes.len(), include_str!("../sql/lanes_insert.sql"), params));
        }
        if !diff.changed.is_empty() {
            let lanes: Vec<At<'_>> = diff.changed.iter().map(|(at, _, row)| (*at, &row.lane)).collect();
            let mut params = names(&lanes);
            params.extend(what_holds(&lanes));
            params.extend(what_happened(&lanes));
            writes.push(Write::exactly(lanes.len(), include_str!("../sql/lanes_write.sql"), params));
        }
    }

    pub(super) fn write_scheduling(&self, writes: &mut Vec<Write>) {
        let diff = diff(&self.base.scheduling, &self.tables.scheduling, PartialEq::eq);
        let params = |rows: &[(&TenantId, &posthaste_core::Scheduling)]| {
            let paused = |(_, row): &(_, &posthaste_core::Scheduling)| row.paused.clone();
            let held: Vec<Option<Hold>> = rows.iter().map(paused).collect();
            let held: Vec<Option<&Hold>> = held.iter().map(Option::as_ref).collect();
            let mut params = vec![Param::ints(rows.iter().map(|(tenant, _)| tenant.0))];
            params.extend(hold(&held));
            params.push(Param::ints(rows.iter().map(|(_, row)| row.held_ms)));
            params
        };
        if !diff.new.is_empty() {
            let sql = include_str!("../sql/scheduling_insert.sql");
            writes.push(Write::claimed(diff.new.len(), sql, params(&diff.new)));
        }
        if !diff.changed.is_empty() {
            let changed: Vec<_> = diff.changed.iter().map(|(at, _, row)| (*at, *row)).collect();
            let sql = include_str!("../sql/scheduling_write.sql");
            writes.push(Write::exactly(changed.len(), sql, params(&changed)));
        }
    }

    /// Events are appended: none was loaded.
    pub(super) fn write_lane_events(&self, writes: &mut Vec<Write>) {
        let number = |lane: Option<LaneId>| lane.map_or(SCHEDULING, |lane| lane.0);
        let lanes = self.tables.lane_events.iter().filter(|(at, _)| !self.base.lane_events.contains_key(at));
        let lanes: Vec<_> = lanes.collect();
        let events = lanes.iter().flat_map(|((tenant, lane), events)| {
            events.iter().map(move |event| (*tenant, number(*lane), event))
        });
        let events: Vec<_> = events.collect();
        if events.is_empty() {
            return;
        }
        let params = vec![
            Param::ints(events.iter().map(|(tenant, ..)| tenant.0)),
            Param::ints(events.iter().map(|(_, lane, _)| *lane)),
            Param::ints(events.iter().map(|(.., event)| event.at.0)),
            Param::texts(events.iter().map(|(.., event)| event.what.as_str())),
            Param::texts(events.iter().map(|(.., event)| &event.actor)),
            Param::texts(events.iter().map(|(.., event)| &event.reason)),
        ];
        writes.push(Write::exactly(events.len(), include_str!("../sql/lane_events_insert.sql"), params));
        let params = vec![
            Param::ints(lanes.iter().map(|((tenant, _), _)| tenant.0)),
            Param::ints(lanes.iter().map(|((_, lane), _)| number(*lane))),
            Param::int(EVENTS_KEPT),
        ];
        writes.push(Write::any(include_str!("../sql/lane_events_trim.sql"), params));
    }
}

fn names(lanes: &[At<'_>]) -> Vec<Param> {
    vec![
        Param::ints(lanes.iter().map(|((tenant, _), _)| tenant.0)),
        Param::ints(lanes.iter().map(|((_, lane), _)| lane.0)),
    ]
}

fn what_holds(lanes: &[At<'_>]) -> Vec<Param> {
    let paused: Vec<_> = lanes.iter().map(|(_, lane)| lane.paused.as_ref()).collect();
    let disabled: Vec<_> = lanes.iter().map(|(_, lane)| lane.disabled.as_ref()).collect();
    let mut params = vec![Param::ints(lanes.iter().map(|(_, lane)| lane.not_before.0))];
    params.extend(hold(&paused));
    params.extend(hold(&disabled));
    params.push(Param::flags(lanes.iter().map(|(_, lane)| lane.switched_off)));
    params
}

fn what_happened(lanes: &[At<'_>]) -> Vec<Param> {
    let circuit = |lane: &Lane| match lane.circuit {
        Circuit::Closed => (None, None, None),
        Circuit::Open { since, until } => (Some(since.0), Some(until.0), None),
        Circuit::HalfOpen { since, until, probe } => (Some(since.0), Some(until.0), Some(probe.0)),
    };
    let circuits: Vec<_> = lanes.iter().map(|(_, lane)| circuit(lane)).collect();
    vec![
        Param::maybe_ints(circuits.iter().map(|(since, ..)| *since)),
        Param::maybe_ints(circuits.iter().map(|(_, until, _)| *until)),
        Param::maybe_ids(circuits.iter().map(|(.., probe)| *probe)),
        Param::ints(lanes.iter().map(|(_, lane)| lane.health.failures)),
        Param::ints(lanes.iter().map(|(_, lane)| lane.health.refusals)),
        Param::maybe_ints(lanes.iter().map(|(_, lane)| lane.health.failing_since.map(|at| at.0))),
        Param::ints(lanes.iter().map(|(_, lane)| lane.health.trips)),
        Param::ints(lanes.iter().map(|(_, lane)| lane.held_ms)),
        Param::maybe_ints(lanes.iter().map(|(_, lane)| lane.held_since.map(|at| at.0))),
        Param::ints(lanes.iter().map(|(_, lane)| lane.rate_used_us)),
    ]
}

/// Since when, why and by whom.
fn hold(holds: &[Option<&Hold>]) -> [Param; 3] {
    [
        Param::maybe_ints(holds.iter().map(|hold| hold.map(|hold| hold.at.0))),
        Param::maybe_texts(holds.iter().map(|hold| hold.map(|hold| &hold.reason))),
        Param::maybe_texts(holds.iter().map(|hold| hold.map(|hold| &hold.by))),
    ]
}
