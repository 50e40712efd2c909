//! Names that are new: written in the order in which they come, and into the tree of names later, many at once and in its
//! own order.
//!
//! Keys come in no order, so each one that went straight into the tree would write a page of its own: half of all pages of
//! an acceptance. The writer, which alone claims names, knows in memory which ones are still in `keys_new`; after a start
//! or a rollback it reads them again. A name that stands in both tables means the same in both, and `keys` counts.

use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Unbounded},
};

use parking_lot::Mutex;
use posthaste_core::{MessageKey, TenantId};
use rusqlite::{Connection, Statement, params};

use super::{
    cells::{Cells, signed},
    fault::Fault,
    session::Session,
};

/// A tenant's name of a message.
type Name = (TenantId, MessageKey);

/// Names that go into the tree for each that comes: who adds none pays for none, and there are never many more than may be.
const MOVED_FOR_EACH: usize = 2;

/// Names that are looked at for each that comes.
const LOOKED_AT_FOR_EACH: usize = 4 * MOVED_FOR_EACH;

/// Rows of names that went into the tree, removed for each that comes.
const REMOVED_FOR_EACH: usize = 8;

/// Where the new names are: shared with those who read.
pub(super) struct RecentNames(Mutex<BTreeMap<Name, i64>>);

impl RecentNames {
    /// As the table has them: before anybody reads, so that no name is unknown for a moment after a start.
    pub(super) fn read(conn: &Connection) -> Result<Self, Fault> {
        let names = read_names(&mut conn.prepare(include_str!("sql/keys_new_list.sql"))?)?;
        Ok(Self(Mutex::new(names)))
    }

    /// The row of a name in `keys_new`, unless it is in `keys`. Whoever reads asks before the snapshot is taken: a name that
    /// is not here any more was in `keys` before.
    pub(super) fn row_of(&self, tenant: TenantId, key: &MessageKey) -> Option<i64> {
        self.0.lock().get(&(tenant, key.clone())).copied()
    }
}

/// Names on their way into the tree.
#[derive(Default)]
pub(super) struct Moves {
    /// What is in memory may not be what is in the table.
    stale: bool,
    stage: Stage,
    /// Names that came since the last step.
    added: usize,
    /// Went into the tree in the transaction that runs.
    moved: Vec<Name>,
}

#[derive(Default)]
enum Stage {
    #[default]
    Resting,
    /// All up to a row go into the tree, from a name on.
    Moving { last: i64, after: Option<Name> },
    /// All up to a row are in the tree, and are removed.
    Removing { last: i64, next: i64 },
}

fn read_names(list: &mut Statement<'_>) -> Result<BTreeMap<Name, i64>, Fault> {
    let mut names = BTreeMap::new();
    let mut rows = list.query([])?;
    while let Some(row) = rows.next()? {
        let mut cells = Cells::of(row, 0);
        let (seq, tenant, key) = (cells.int()?, TenantId(cells.int()?), cells.key()?);
        names.insert((tenant, key), seq);
    }
    Ok(names)
}

impl Session<'_> {
    /// Whether a name is in `keys_new`, and where.
    pub(super) fn recent_row(&mut self, tenant: TenantId, key: &MessageKey) -> Result<Option<i64>, Fault> {
        self.know_recent_names()?;
        Ok(self.recent.row_of(tenant, key))
    }

    /// Claims a business key that nobody has.
    pub(super) fn add_recent(
        &mut self,
        tenant: TenantId,
        key: &MessageKey,
        message: [u8; 16],
    ) -> Result<(), Fault> {
        self.know_recent_names()?;
        self.sql.keys_new_insert.execute(params![tenant.0, key.as_str(), "key", message])?;
        let row = self.conn.last_insert_rowid();
        self.recent.0.lock().insert((tenant, key.clone()), row);
        self.moves.added += 1;
        Ok(())
    }

    /// What was added in memory was rolled back.
    pub(super) fn forget_recent(&mut self) {
        self.moves = Moves { stale: true, ..Moves::default() };
    }

    pub(super) fn know_recent_names(&mut self) -> Result<(), Fault> {
        if self.moves.stale {
            self.read_recent_names()?;
        }
        Ok(())
    }

    /// Reads which names are in `keys_new`. It holds some ten thousand.
    pub(super) fn read_recent_names(&mut self) -> Result<(), Fault> {
        let names = read_names(&mut self.sql.keys_new_list)?;
        *self.recent.0.lock() = names;
        self.moves = Moves::default();
        Ok(())
    }

    /// A step of what is due, in the transaction that is about to be committed.
    pub(super) fn move_recent_names(&mut self) -> Result<(), Fault> {
        self.know_recent_names()?;
        let added = std::mem::take(&mut self.moves.added);
        if added == 0 {
            return Ok(());
        }
        match std::mem::take(&mut self.moves.stage) {
            Stage::Resting => {
                let names = self.recent.0.lock();
                if names.len() >= self.new_names_max {
                    let last = names.values().copied().max().unwrap_or(0);
                    self.moves.stage = Stage::Moving { last, after: None };
                }
            }
            Stage::Moving { last, after } => self.move_some(last, after.as_ref(), added)?,
            Stage::Removing { last, next } => {
                let until = last.min(next.saturating_add(signed(REMOVED_FOR_EACH * added)));
                self.sql.keys_new_delete.execute([until])?;
                if until < last {
                    self.moves.stage = Stage::Removing { last, next: until };
                }
            }
        }
        Ok(())
    }

    fn move_some(&mut self, last: i64, after: Option<&Name>, added: usize) -> Result<(), Fault> {
        let (mut chosen, mut looked_at) = (Vec::new(), None);
        {
            let names = self.recent.0.lock();
            let from = after.map_or(Unbounded, Excluded);
            for (name, row) in names.range((from, Unbounded)).take(LOOKED_AT_FOR_EACH * added) {
                looked_at = Some(name.clone());
                if *row <= last {
                    chosen.push((name.clone(), *row));
                }
                if chosen.len() >= MOVED_FOR_EACH * added {
                    break;
                }
            }
        }
        for (name, row) in chosen {
            let moved = self.sql.keys_new_move.execute([row])?;
            if moved == 0 && self.sql.keys_new_differs.exists([row])? {
                // One bad row never stops the others: `keys` counts, and a person is told.
                tracing::error!(tenant = name.0.0, key = name.1.as_str(), "two messages have one name");
            }
            self.moves.moved.push(name);
        }
        self.moves.stage = match looked_at {
            Some(name) => Stage::Moving { last, after: Some(name) },
            None => Stage::Removing { last, next: self.first_recent_row()? },
        };
        Ok(())
    }

    fn first_recent_row(&mut self) -> Result<i64, Fault> {
        let mut rows = self.sql.keys_new_list.query([])?;
        Ok(match rows.next()? {
            Some(row) => Cells::of(row, 0).int()?,
            None => 0,
        })
    }

    /// The transaction is committed: what it moved is found in the tree from now on.
    pub(super) fn recent_names_moved(&mut self) {
        if self.moves.moved.is_empty() {
            return;
        }
        let mut names = self.recent.0.lock();
        for name in self.moves.moved.drain(..) {
            names.remove(&name);
        }
    }
}
