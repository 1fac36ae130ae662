//! The notice is a task: it cannot be lost, and where a queue is away it is tried again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use counterfoil_e2e::on_every_database;
use counterfoil_payment::treasury::notice::{
    Notice, NoticePost, PUSH_BATCH_NOTIFY, PushBatchNotify,
};
use counterfoil_payment::treasury::push::push_order;
use counterfoil_task::{Engine, EngineSettings};

use super::hand::{Hand, Scripted, channels, engine, line, refused};

/// A queue that is away as often as a test says.
#[derive(Default)]
struct Queue {
    away: AtomicU32,
    posted: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl NoticePost for Queue {
    async fn post(&self, notice: &Notice) -> Result<(), String> {
        let left = self.away.load(Ordering::SeqCst);
        if left > 0 {
            self.away.store(left - 1, Ordering::SeqCst);
            return Err("no broker answers".into());
        }
        self.posted.lock().expect("no panic").push(notice.text());
        Ok(())
    }
}

on_every_database! {
    async fn the_notice_pushes_every_batch_and_is_done(app: TestApp) {
        let lines = [1, 2, 3].map(|n| line(n, n * 100));
        let hand = Hand::order(&app, "MAX_LINES:1", &lines).await;
        hand.create().await.unwrap();
        let channel = Scripted::default();
        channel.answers(refused());
        let summary = engine(&app, &channel).round(PUSH_BATCH_NOTIFY.handler, "").await.unwrap();
        assert_eq!((summary.succeeded, summary.failed), (1, 0));
        assert_eq!(channel.sent().len(), 3);
        assert_eq!(hand.standing().await[..4],
            ["PUSH_FAIL", "PUSH_SUCCESS", "PUSH_SUCCESS", "40|PUSH_PARTIAL"]);
        let again = engine(&app, &channel).round(PUSH_BATCH_NOTIFY.handler, "").await.unwrap();
        assert_eq!(again.selected, 0);
    }

    async fn a_queue_that_is_away_does_not_lose_the_notice(app: TestApp) {
        let hand = Hand::order(&app, "NONE", &[line(1, 100)]).await;
        hand.create().await.unwrap();
        let channel = Scripted::default();
        let queue = Arc::new(Queue::default());
        queue.away.store(2, Ordering::SeqCst);
        for expected in [(0, 1), (0, 1), (1, 0)] {
            let engine = Engine::new(app.db.clone(), EngineSettings::default())
                .with(PushBatchNotify::posting(channels(&channel), queue.clone()));
            let summary = engine.round(PUSH_BATCH_NOTIFY.handler, "").await.unwrap();
            assert_eq!((summary.succeeded, summary.failed), expected, "{summary:?}");
            app.pass_minutes(61);
        }
        assert_eq!(channel.sent().len(), 0, "whoever listens pushes");
        let posted = queue.posted.lock().expect("no panic").clone();
        assert_eq!(posted.len(), 1);
        let heard = Notice::read(&posted[0]).expect("our event");
        assert_eq!(push_order(&app.db, &channels(&channel), heard.target()).await.unwrap(), 1);
        assert_eq!(push_order(&app.db, &channels(&channel), heard.target()).await.unwrap(), 0);
        assert_eq!(hand.standing().await[0], "PUSH_SUCCESS");
        assert_eq!(Notice::read(r#"{"event":"OTHER","paymentOrderId":1}"#), None);
    }
}
