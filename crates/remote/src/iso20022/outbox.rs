//! pain.001 files in a folder, from which the bank's transport takes them.

use std::io::Write;
use std::path::{Path, PathBuf};

use counterfoil_payment::treasury::port::{
    Instruction, InstructionLine, LineFault, Message, PaymentChannel, PushAnswer,
};

use super::characters::Characters;
use super::pain001;

/// Writes each message as a file of its own, whole or not at all.
///
/// The message's id is the file's name and the id in it: a bank knows a message by it, and the same
/// id always has the same bytes, so that writing it again changes nothing.
#[derive(Debug, Clone)]
pub struct OutboxChannel {
    folder: PathBuf,
    characters: Characters,
}

impl OutboxChannel {
    /// Writes into `folder`, which is made when it is missing.
    pub fn new(folder: impl Into<PathBuf>, characters: Characters) -> OutboxChannel {
        OutboxChannel { folder: folder.into(), characters }
    }

    fn file(&self, message: &Message) -> PathBuf {
        self.folder.join(format!("{}.xml", message.message_id))
    }

    /// What a finished file says; `None` when there is none.
    fn written(&self, message: &Message) -> Option<PushAnswer> {
        let file = self.file(message);
        match std::fs::read(&file) {
            Ok(bytes) if bytes == message.body.as_bytes() => Some(accepted(&file)),
            Ok(_) => Some(PushAnswer::Unknown {
                message: "the outbox holds other bytes under this id; a person must look".into(),
            }),
            Err(_) => None,
        }
    }

    fn write(&self, message: &Message) -> PushAnswer {
        if let Some(answer) = self.written(message) {
            return answer;
        }
        // Until the file has its name nothing has left: a failure before is certain.
        let refused = |error: std::io::Error| PushAnswer::Refused {
            code: "outbox-not-written".into(),
            message: format!("the outbox cannot be written: {error}"),
        };
        if let Err(error) = std::fs::create_dir_all(&self.folder) {
            return refused(error);
        }
        let part = self.folder.join(format!(".{}.part", message.message_id));
        if let Err(error) = write_synced(&part, message.body.as_bytes()) {
            return refused(error);
        }
        let file = self.file(message);
        if let Err(error) = std::fs::rename(&part, &file) {
            return refused(error);
        }
        match std::fs::File::open(&self.folder).and_then(|folder| folder.sync_all()) {
            Ok(()) => accepted(&file),
            Err(error) => PushAnswer::Unknown {
                message: format!("the file has its name, but the folder cannot be synced: {error}"),
            },
        }
    }
}

fn write_synced(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut part = std::fs::File::create(file)?;
    part.write_all(bytes)?;
    part.sync_all()
}

fn accepted(file: &Path) -> PushAnswer {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    PushAnswer::Accepted { reference: Some(name), entries: Vec::new() }
}

#[async_trait::async_trait]
impl PaymentChannel for OutboxChannel {
    fn is_idempotent(&self) -> bool {
        true
    }

    fn fault(&self, line: &InstructionLine) -> Option<LineFault> {
        pain001::fault(line, self.characters)
    }

    fn render(&self, instruction: &Instruction) -> String {
        pain001::render(instruction, self.characters)
    }

    async fn send(&self, message: &Message) -> PushAnswer {
        let (channel, message) = (self.clone(), message.clone());
        let written = tokio::task::spawn_blocking(move || channel.write(&message)).await;
        written.unwrap_or_else(|error| PushAnswer::Unknown { message: error.to_string() })
    }

    /// A file that is there was written. One that is not may have been taken away already.
    async fn inquire(&self, message: &Message) -> PushAnswer {
        let (channel, message) = (self.clone(), message.clone());
        let found = tokio::task::spawn_blocking(move || channel.written(&message)).await;
        found.ok().flatten().unwrap_or_else(|| PushAnswer::Unknown {
            message: "the outbox holds no such file; it may have been taken away".into(),
        })
    }
}
