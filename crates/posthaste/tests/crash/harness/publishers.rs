//! Those who publish, and try again until they are answered.

use std::sync::Arc;

use posthaste_testkit::history::record::Way;

use super::{
    chance::Chance,
    client::Client,
    message::{Message, offer_batch},
    stage::Stage,
};

/// How often one tries before it gives the message up.
const TRIES_MAX: u32 = 500;

/// Publishes singly, in batches and through intake, until the load is over.
pub(crate) async fn run(stage: Arc<Stage>, number: usize) {
    let mut publisher = Publisher::new(&stage, &format!("publisher {number}"));
    for count in 0_u64.. {
        if stage.load_is_over() {
            return;
        }
        let name = format!("{number}.{count}");
        match publisher.chance.within(0..100) {
            0..12 => publisher.batch(&name).await,
            12..40 => publisher.deliver(&name).await,
            _ => publisher.single(&name).await,
        }
        publisher.chance.pause(stage.plan.pace_ms.clone()).await;
    }
}

/// Publishes to the fleet, now and then.
pub(crate) async fn run_fan_out(stage: Arc<Stage>) {
    let mut publisher = Publisher::new(&stage, "fan-out");
    for count in 0_u64.. {
        if stage.load_is_over() {
            return;
        }
        let message =
            Message::fan_out(format!("fleet:{count}"), stage.plan.subscribers, &mut publisher.chance);
        publisher.until_answered(&message).await;
        publisher.chance.pause(stage.plan.fan_out_pace_ms.clone()).await;
    }
}

struct Publisher<'s> {
    stage: &'s Stage,
    chance: Chance,
    client: Client,
    /// For offers of one key at the same moment.
    other: Client,
}

impl<'s> Publisher<'s> {
    fn new(stage: &'s Stage, actor: &str) -> Self {
        let chance = Chance::of(stage.plan.seed, actor);
        Self { stage, chance, client: stage.client(), other: stage.client() }
    }

    async fn single(&mut self, name: &str) {
        let message = Message::new(format!("order:{name}"), Way::Publish, &mut self.chance);
        if self.chance.permille(80) {
            let log = &self.stage.log;
            tokio::join!(message.offer(&mut self.client, log), message.offer(&mut self.other, log));
        }
        self.until_answered(&message).await;
        self.again(&message).await;
        if self.chance.permille(20) {
            message.with_other_body().offer(&mut self.client, &self.stage.log).await;
        }
    }

    async fn deliver(&mut self, name: &str) {
        let message = Message::intake(&format!("delivery-{name}"), &mut self.chance);
        self.until_answered(&message).await;
        self.again(&message).await;
    }

    /// A redelivery of what was answered.
    async fn again(&mut self, message: &Message) {
        if self.chance.permille(60) {
            message.offer(&mut self.client, &self.stage.log).await;
        }
    }

    async fn until_answered(&mut self, message: &Message) {
        for _ in 0..TRIES_MAX {
            match message.offer(&mut self.client, &self.stage.log).await {
                Some(Some(200..500)) => return,
                // Nobody knows what became of it, and nobody asks again.
                Some(None) if self.chance.permille(50) => return,
                _ => self.chance.pause(5..25).await,
            }
        }
    }

    async fn batch(&mut self, name: &str) {
        let count = self.chance.within(2..60);
        let message = |at| Message::new(format!("batch:{name}:{at}"), Way::Batch, &mut self.chance);
        let messages: Vec<_> = (0..count).map(message).collect();
        for _ in 0..TRIES_MAX {
            match offer_batch(&messages, &mut self.client, &self.stage.log).await {
                Some(true) => return,
                _ => self.chance.pause(5..25).await,
            }
        }
    }
}
