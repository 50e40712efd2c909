//! Accepting messages and making their jobs.

use posthaste_core::{MessageId, MessageKey, Share, TenantId, Timestamp, limits};

use super::tables::{FanOut, Message, Tables};
use crate::{
    Acceptance, AcceptedMessage, FanOutStep, Fingerprint, KeyKind, NewMessage, Stage, Target,
    accepting::{self, Birth},
};

impl Tables {
    pub(crate) fn accept(&mut self, new: NewMessage, now: Timestamp) -> Acceptance {
        let Some((by, found)) = self.find_known(&new) else {
            return self.accept_new(new, now);
        };
        if found == new.id {
            return Acceptance::New(self.accepted(new.tenant, found));
        }
        let (key, fingerprint) = self.known_as(new.tenant, found);
        if *key == new.key
            && let Some(field) = fingerprint.difference(&new.fingerprint)
        {
            return Acceptance::KeyReused { field, message: found };
        }
        self.count_duplicate(&new, found, (by.0, &by.1), now);
        Acceptance::Duplicate(self.accepted(new.tenant, found))
    }

    /// The first of the message's names that is known, in its own words, and the message that has it.
    fn find_known(&self, new: &NewMessage) -> Option<((KeyKind, MessageKey), MessageId)> {
        accepting::names(new).into_iter().find_map(|(kind, key)| {
            let found = self.names.get(&(new.tenant, key.clone()))?;
            Some(((kind, key.clone()), *found))
        })
    }

    /// The business key of a message, here or archived, and what it stands for.
    fn known_as(&self, tenant: TenantId, id: MessageId) -> (&MessageKey, &Fingerprint) {
        if let Some(message) = self.messages.get(&(tenant, id)) {
            return (&message.given.key, &message.given.fingerprint);
        }
        let archived = &self.archived[&(tenant, id)];
        (&archived.known.key, &archived.fingerprint)
    }

    fn accept_new(&mut self, mut new: NewMessage, now: Timestamp) -> Acceptance {
        let (tenant, id) = (new.tenant, new.id);
        let names = accepting::names(&new).into_iter();
        let others = names.skip(1).map(|(kind, key)| (key.clone(), kind)).collect();
        let targets = accepting::distinct(std::mem::take(&mut new.targets));
        let due_at = accepting::due_at(new.due, now);
        let quarantine = accepting::quarantine(new.due);
        let seq = self.next_seq();
        let jobs_total = targets.len();
        let held_by = self.paused_source(tenant, new.source.as_ref()).filter(|_| !targets.is_empty());
        let message = Message { seq, accepted_at: now, jobs_total, duplicates: 0, others, given: new };
        for key in message.others.keys().chain([&message.given.key]) {
            self.names.insert((tenant, key.clone()), id);
        }
        let taken = self.messages.insert((tenant, id), message);
        assert!(taken.is_none(), "{id} names two messages");
        if targets.len() > limits::FANOUT_INLINE_MAX || held_by.is_some() {
            self.fanouts.insert(seq, FanOut { tenant, message: id, due_at, targets, made: 0, held_by });
        } else {
            let birth = Birth { tenant, message: id, due_at, now, share: Share::Fresh, quarantine };
            for target in targets {
                self.make_job(birth, target);
            }
        }
        Acceptance::New(self.accepted(tenant, id))
    }

    fn count_duplicate(
        &mut self,
        new: &NewMessage,
        found: MessageId,
        (kind, key): (KeyKind, &MessageKey),
        now: Timestamp,
    ) {
        let tenant = new.tenant;
        if self.noted(tenant, found, None, Stage::Duplicate) < limits::DUPLICATES_RECORDED_MAX as usize {
            self.note(accepting::duplicate_entry(new, found, (kind, key), now));
        }
        let mut free = accepting::names(new);
        free.retain(|(_, key)| !self.names.contains_key(&(tenant, (*key).clone())));
        let names = &mut self.names;
        let add = |others: usize| {
            let mut added = Vec::new();
            for (kind, key) in accepting::names_to_add(free, others) {
                names.insert((tenant, key.clone()), found);
                added.push((kind, key.clone()));
            }
            added
        };
        if let Some(message) = self.messages.get_mut(&(tenant, found)) {
            message.duplicates += 1;
            let added = add(message.others.len());
            message.others.extend(added.into_iter().map(|(kind, key)| (key, kind)));
        } else {
            let archived = self.archived.get_mut(&(tenant, found)).expect("names mean messages");
            archived.known.duplicates += 1;
            let added = add(archived.known.aliases.len());
            archived.known.aliases.extend(added);
            archived.known.aliases.sort_by(|one, two| one.1.cmp(&two.1));
        }
    }

    fn make_job(&mut self, birth: Birth, target: Target) {
        let held_ms = self.held_ms(birth.tenant, target.lane, birth.now);
        let job = accepting::job_of(birth, target.lane, target.kind, held_ms);
        self.insert_job(&job, target);
    }

    fn accepted(&self, tenant: TenantId, id: MessageId) -> AcceptedMessage {
        let Some(message) = self.messages.get(&(tenant, id)) else {
            let known = &self.archived[&(tenant, id)].known;
            return AcceptedMessage {
                id,
                key: known.key.clone(),
                accepted_at: known.accepted_at,
                jobs_total: known.jobs_total,
                fanout_running: false,
                jobs: Vec::new(),
            };
        };
        AcceptedMessage {
            id,
            key: message.given.key.clone(),
            accepted_at: message.accepted_at,
            jobs_total: message.jobs_total,
            fanout_running: self.fanouts.contains_key(&message.seq),
            jobs: self.briefs(tenant, id),
        }
    }

    pub(crate) fn fan_out(&mut self, jobs_max: usize, now: Timestamp) -> FanOutStep {
        let mut lanes = std::collections::BTreeSet::new();
        let mut jobs = 0;
        while jobs < jobs_max
            && let Some(seq) = self.next_fan_out()
            && let Some(mut fan_out) = self.fanouts.remove(&seq)
        {
            let (tenant, message) = (fan_out.tenant, fan_out.message);
            let accepted_at = self.messages[&(tenant, message)].accepted_at;
            let share = self.fan_out_share(tenant, accepted_at, fan_out.due_at, now);
            let birth = Birth { tenant, message, due_at: fan_out.due_at, now, share, quarantine: None };
            let left = &fan_out.targets[fan_out.made..];
            for target in left.iter().take(jobs_max - jobs).cloned().collect::<Vec<_>>() {
                lanes.insert((tenant, target.lane));
                self.make_job(birth, target);
                jobs += 1;
                fan_out.made += 1;
            }
            if fan_out.made < fan_out.targets.len() {
                self.fanouts.insert(seq, fan_out);
            }
        }
        let heads = lanes.into_iter().filter_map(|(tenant, lane)| self.head(tenant, lane)).collect();
        FanOutStep { jobs, heads, more: self.next_fan_out().is_some() }
    }
}
