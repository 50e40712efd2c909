//! What somebody waits for, in turns by tenant: one that floods waits longer itself, not others.

use std::collections::{HashMap, VecDeque};

use posthaste_core::TenantId;

use super::Queued;

/// How many operations of one tenant go into a batch while others have work too. Every answer leaves with its batch: a
/// large one would be a long wait for all that are in it.
pub(super) const SHARED_OPS_MAX: usize = 16;

/// For so many batches after two tenants' operations came one after the other, both count as having work.
const SHARED_BATCHES: u32 = 512;

/// Lines of tenants without work that are kept, so that they need not be made again.
const LINES_KEPT_MAX: usize = 64;

/// The share of what may wait that one tenant may fill: 1/2.
const TENANT_PART: usize = 2;

pub(super) struct Turns<W: ?Sized> {
    /// Of no tenant, or of several.
    own: VecDeque<Box<W>>,
    lines: HashMap<TenantId, Line<W>>,
    /// Tenants whose line isn't empty; the first is next.
    order: VecDeque<TenantId>,
    waiting: usize,
    /// Whose operation came last.
    last: Option<TenantId>,
    /// For so many batches operations of several tenants are expected.
    shared: u32,
}

struct Line<W: ?Sized> {
    waiting: VecDeque<Box<W>>,
    bytes: usize,
}

impl<W: ?Sized> Default for Turns<W> {
    fn default() -> Self {
        let (own, lines, order) = (VecDeque::new(), HashMap::new(), VecDeque::new());
        Self { own, lines, order, waiting: 0, last: None, shared: 0 }
    }
}

impl<W: ?Sized> Default for Line<W> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), bytes: 0 }
    }
}

impl<W: Queued + ?Sized> Turns<W> {
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// Whether a tenant holds so much of what may wait that others would find no room.
    pub(super) fn holds_too_much(&self, tenant: Option<TenantId>, ops_max: usize, bytes_max: usize) -> bool {
        let line = tenant.and_then(|tenant| self.lines.get(&tenant));
        line.is_some_and(|line| {
            line.waiting.len() >= ops_max / TENANT_PART || line.bytes >= bytes_max / TENANT_PART
        })
    }

    pub(super) fn push(&mut self, tenant: Option<TenantId>, work: Box<W>) {
        self.waiting += 1;
        let Some(tenant) = tenant else {
            self.own.push_back(work);
            return;
        };
        if self.last.replace(tenant).is_some_and(|last| last != tenant) {
            self.shared = SHARED_BATCHES;
        }
        let line = self.lines.entry(tenant).or_default();
        if line.waiting.is_empty() {
            self.order.push_back(tenant);
        }
        line.bytes += work.bytes();
        line.waiting.push_back(work);
    }

    /// Takes work for a batch for as long as `take` says of its bytes that there is room.
    pub(super) fn take_while(&mut self, mut room: impl FnMut(usize) -> bool, mut take: impl FnMut(Box<W>)) {
        while self.own.front().is_some_and(|work| room(work.bytes())) {
            take(self.own.pop_front().expect("it is at the front"));
            self.waiting -= 1;
        }
        let rounds = if self.shared > 0 { SHARED_OPS_MAX } else { usize::MAX };
        self.shared = self.shared.saturating_sub(1);
        for _ in 0..rounds {
            for _ in 0..self.order.len() {
                let tenant = *self.order.front().expect("as many as there are");
                let line = self.lines.get_mut(&tenant).expect("whoever is next has a line");
                let bytes = line.waiting.front().expect("and work in it").bytes();
                if !room(bytes) {
                    return;
                }
                take(line.waiting.pop_front().expect("it is at the front"));
                line.bytes -= bytes;
                self.waiting -= 1;
                let over = line.waiting.is_empty();
                self.order.rotate_left(1);
                if over {
                    self.order.pop_back();
                    if self.lines.len() > LINES_KEPT_MAX {
                        self.lines.remove(&tenant);
                    }
                }
            }
            if self.order.is_empty() {
                return;
            }
        }
    }

    /// All that waits, in no order.
    pub(super) fn drain(&mut self) -> Vec<Box<W>> {
        self.waiting = 0;
        self.order.clear();
        let lines = self.lines.drain().flat_map(|(_, line)| line.waiting);
        self.own.drain(..).chain(lines).collect()
    }
}
