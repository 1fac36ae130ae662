//! What an executor keeps on disk: triggers that it has taken in, results that no admin has taken
//! yet, and logs. A result is written before the trigger is forgotten, so a process that dies
//! between the two tells it twice, and the admin ignores the second.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use counterfoil_db::Instant;
use counterfoil_remote::TriggerResult;
use serde::{Deserialize, Serialize};

use super::protocol::{LogPart, Trigger};

/// Characters of a result's message: what admins take.
pub const MAX_RESULT_CHARACTERS: usize = 15_000;
/// Lines of one answer to `/log`.
pub const MAX_LOG_LINES: usize = 1000;
/// Bytes of one answer to `/log`, but for a single line that is longer.
pub const MAX_LOG_BYTES: usize = 1024 * 1024;

/// The folder of one process.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    // Held as long as the process lives: two processes would settle each other's triggers.
    _lock: File,
    results: AtomicU64,
}

/// A result on disk.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    log_id: i64,
    log_date_time: i64,
    code: i32,
    message: String,
}

impl Store {
    /// Opens a folder, or makes it.
    ///
    /// # Errors
    /// It cannot be written, or another process has it.
    pub fn open(root: &Path) -> Result<Store> {
        let place = || format!("xxl-job.data-dir {}", root.display());
        for folder in ["accepted", "results", "log"] {
            fs::create_dir_all(root.join(folder)).with_context(place)?;
        }
        let lock = OpenOptions::new().create(true).append(true).open(root.join("lock"));
        let lock = lock.with_context(place)?;
        if lock.try_lock().is_err() {
            anyhow::bail!("{} is another process's: each needs a folder of its own", place());
        }
        let store = Store { root: root.to_owned(), _lock: lock, results: AtomicU64::new(0) };
        Ok(store)
    }

    fn accepted(&self, log: i64) -> PathBuf {
        self.root.join("accepted").join(format!("{log}.json"))
    }

    /// Keeps a trigger until its result is kept.
    pub fn accept(&self, trigger: &Trigger) -> io::Result<()> {
        write_whole(&self.accepted(trigger.log_id), &serde_json::to_vec(trigger)?)
    }

    /// Keeps a result until an admin takes it, and forgets the trigger.
    pub fn settle(&self, result: &TriggerResult, now: Instant) -> io::Result<()> {
        let kept = Kept {
            log_id: result.log_id,
            log_date_time: result.log_date_time,
            code: result.code,
            message: result.message.chars().take(MAX_RESULT_CHARACTERS).collect(),
        };
        write_whole(&self.result(result.log_id, now), &serde_json::to_vec(&kept)?)?;
        self.forget(result.log_id)
    }

    /// Where a result is kept: older ones come first, and two of one moment are two.
    fn result(&self, log: i64, now: Instant) -> PathBuf {
        let number = self.results.fetch_add(1, Ordering::Relaxed);
        let name = format!("{:020}-{number:06}-{log}.json", now.timestamp_micros());
        self.root.join("results").join(name)
    }

    /// Puts a result that an admin refuses behind the others.
    pub fn postpone(&self, path: &Path, log: i64, now: Instant) -> io::Result<()> {
        fs::rename(path, self.result(log, now))
    }

    /// Forgets a trigger that was not taken in after all.
    pub fn forget(&self, log: i64) -> io::Result<()> {
        gone(fs::remove_file(self.accepted(log)))
    }

    /// Triggers whose process ended before they did.
    pub fn left_over(&self) -> io::Result<Vec<Trigger>> {
        let mut triggers = Vec::new();
        for path in files(&self.root.join("accepted"))? {
            match fs::read(&path).map(|bytes| serde_json::from_slice(&bytes)) {
                Ok(Ok(trigger)) => triggers.push(trigger),
                Ok(Err(error)) => drop_unreadable(&path, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(triggers)
    }

    /// The oldest results that no admin has taken, with the files they are in.
    pub fn untold(&self, most: usize) -> io::Result<Vec<(PathBuf, TriggerResult)>> {
        let mut results = Vec::new();
        for path in files(&self.root.join("results"))?.into_iter().take(most) {
            match fs::read(&path).map(|bytes| serde_json::from_slice::<Kept>(&bytes)) {
                Ok(Ok(kept)) => {
                    let Kept { log_id, log_date_time, code, message } = kept;
                    let result = TriggerResult { log_id, log_date_time, code, message };
                    results.push((path, result));
                }
                Ok(Err(error)) => drop_unreadable(&path, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(results)
    }

    /// An admin has taken a result.
    pub fn told(&self, path: &Path) -> io::Result<()> {
        gone(fs::remove_file(path))
    }

    /// Appends lines to a trigger's log; a second run of the same trigger goes on below.
    pub fn log(&self, log: i64, now: Instant, text: &str) -> io::Result<()> {
        let day = self.root.join("log").join(now.format("%Y%m%d").to_string());
        fs::create_dir_all(&day)?;
        let path = self.log_of(log)?.unwrap_or_else(|| day.join(format!("{log}.log")));
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        let mut lines = String::new();
        for line in text.lines() {
            lines.push_str(&format!("{} {line}\n", now.format("%Y-%m-%dT%H:%M:%S%.3fZ")));
        }
        file.write_all(lines.as_bytes())
    }

    /// The file of a trigger's log: in the newest day that has one.
    fn log_of(&self, log: i64) -> io::Result<Option<PathBuf>> {
        let name = format!("{log}.log");
        let days = files(&self.root.join("log"))?;
        Ok(days.into_iter().rev().map(|day| day.join(&name)).find(|path| path.exists()))
    }

    /// A part of a trigger's log; `None` = there is none.
    pub fn read_log(&self, log: i64, from: i64, is_over: bool) -> io::Result<Option<LogPart>> {
        let Some(path) = self.log_of(log)? else {
            return Ok(None);
        };
        let from = from.max(1);
        let skipped = usize::try_from(from - 1).unwrap_or(usize::MAX);
        let mut lines = BufReader::new(File::open(path)?).lines().skip(skipped).peekable();
        let (mut content, mut count) = (String::new(), 0_i64);
        while content.len() < MAX_LOG_BYTES && count < MAX_LOG_LINES as i64 {
            let Some(line) = lines.next() else { break };
            content.push_str(&line?);
            content.push('\n');
            count += 1;
        }
        let is_end = is_over && lines.peek().is_none();
        let to_line_num = from + count - 1;
        Ok(Some(LogPart { from_line_num: from, to_line_num, log_content: content, is_end }))
    }

    /// Removes the logs of days before `first`.
    pub fn prune_logs(&self, first: Instant) -> io::Result<usize> {
        let first = first.format("%Y%m%d").to_string();
        let mut pruned = 0;
        for day in files(&self.root.join("log"))? {
            let name = day.file_name().map(|name| name.to_string_lossy().into_owned());
            if name.is_some_and(|name| name.len() == first.len() && name < first) {
                fs::remove_dir_all(&day)?;
                pruned += 1;
            }
        }
        Ok(pruned)
    }
}

/// The entries of a folder by name.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_none_or(|extension| extension != "part"));
    paths.sort();
    Ok(paths)
}

/// A file is there whole or not at all, also after the machine lost its power.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = File::create(&part)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    fs::rename(&part, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_data(),
        None => Ok(()),
    }
}

/// Not there any more is as good as removed.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A file that nobody can read would stand in the way for ever.
fn drop_unreadable(path: &Path, error: &serde_json::Error) {
    tracing::error!(path = %path.display(), %error, "a file of the executor is unreadable");
    let set_aside = path.with_extension("unreadable.part");
    if let Err(error) = fs::rename(path, set_aside) {
        tracing::error!(path = %path.display(), %error, "and cannot be set aside");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Instant {
        "2026-09-08T02:00:00Z".parse().unwrap()
    }

    fn result(log: i64, message: &str) -> TriggerResult {
        TriggerResult { log_id: log, log_date_time: 5, code: 200, message: message.into() }
    }

    #[test]
    fn a_trigger_is_kept_until_its_result_is_and_a_result_until_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let trigger = Trigger { log_id: 7, job_id: 3, ..Trigger::default() };
        {
            let store = Store::open(folder.path()).unwrap();
            store.accept(&trigger).unwrap();
        }
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(store.left_over().unwrap(), [trigger]);
        store.settle(&result(7, "done"), now()).unwrap();
        store.settle(&result(7, "done again"), now()).unwrap();
        assert!(store.left_over().unwrap().is_empty());
        let untold = store.untold(10).unwrap();
        let messages: Vec<&str> = untold.iter().map(|(_, one)| one.message.as_str()).collect();
        assert_eq!(messages, ["done", "done again"]);
        for (path, _) in untold {
            store.told(&path).unwrap();
            store.told(&path).unwrap();
        }
        assert!(store.untold(10).unwrap().is_empty());
    }

    #[test]
    fn a_message_is_cut_to_fifteen_thousand_characters_not_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        store.settle(&result(1, &"账".repeat(20_000)), now()).unwrap();
        let untold = store.untold(1).unwrap();
        assert_eq!(untold[0].1.message.chars().count(), MAX_RESULT_CHARACTERS);
    }

    #[test]
    fn one_folder_is_one_processs() {
        let folder = tempfile::tempdir().unwrap();
        let _first = Store::open(folder.path()).unwrap();
        assert!(Store::open(folder.path()).is_err());
    }

    #[test]
    fn a_file_that_is_torn_stands_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        fs::write(folder.path().join("results/0.json"), "{\"logId\"").unwrap();
        fs::write(folder.path().join("accepted/1.json"), "").unwrap();
        store.settle(&result(2, "whole"), now()).unwrap();
        assert!(store.left_over().unwrap().is_empty());
        for _ in 0..2 {
            assert_eq!(store.untold(10).unwrap().len(), 1);
        }
    }

    #[test]
    fn lines_of_a_log_count_from_one_and_end_when_the_round_has() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(store.read_log(9, 1, true).unwrap(), None);
        store.log(9, now(), "first\nsecond").unwrap();
        let tomorrow = now() + chrono::TimeDelta::days(1);
        store.log(9, tomorrow, "third").unwrap();
        let part = |from, is_over| store.read_log(9, from, is_over).unwrap().unwrap();
        let lines = |part: &LogPart| (part.from_line_num, part.to_line_num, part.is_end);
        assert_eq!(lines(&part(0, false)), (1, 3, false));
        assert_eq!(lines(&part(2, true)), (2, 3, true));
        assert!(part(3, true).log_content.ends_with(" third\n"));
        let after = part(4, true);
        assert_eq!((lines(&after), after.log_content.as_str()), ((4, 3, true), ""));
    }

    #[test]
    fn a_long_log_is_read_in_parts_and_old_days_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let lines = MAX_LOG_LINES + 5;
        store.log(9, now(), &"line\n".repeat(lines)).unwrap();
        let first = store.read_log(9, 1, true).unwrap().unwrap();
        assert_eq!((first.to_line_num, first.is_end), (MAX_LOG_LINES as i64, false));
        let rest = store.read_log(9, first.to_line_num + 1, true).unwrap().unwrap();
        assert_eq!((rest.to_line_num, rest.is_end), (lines as i64, true));
        assert_eq!(store.prune_logs(now()).unwrap(), 0);
        assert_eq!(store.prune_logs(now() + chrono::TimeDelta::days(1)).unwrap(), 1);
        assert_eq!(store.read_log(9, 1, true).unwrap(), None);
    }
}
