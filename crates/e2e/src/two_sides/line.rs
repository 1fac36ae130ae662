//! A bad line between hall and centre: connections that are refused, slow, cut in the middle of an
//! answer, or whose requests are sent twice.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::Random;

/// Bytes passed on at once, and by a slow line.
const CHUNK: usize = 16 * 1024;
const SLOW_CHUNK: usize = 256;
const SLOW_PAUSE: Duration = Duration::from_millis(3);
/// How long a repeated request's answer is waited for.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(10);

/// What becomes of a connection.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// It is closed at once.
    Refused,
    /// So many bytes come back, then it is cut.
    Cut(usize),
    /// Its bytes come in small pieces.
    Slow,
    /// Its first request is sent to the centre twice.
    Repeated,
    /// Nothing.
    Good,
}

/// What a line did.
#[derive(Debug, Clone, Default)]
pub struct LineReport {
    /// Connections refused.
    pub refused: u32,
    /// Connections cut.
    pub cut: u32,
    /// Connections that were slow.
    pub slow: u32,
    /// The status lines of requests that were sent again.
    pub repeated: Vec<String>,
}

/// A bad line.
#[derive(Debug)]
pub struct BadLine {
    /// Where it listens.
    pub port: u16,
    report: Arc<Mutex<LineReport>>,
    // Dropping it cuts everything.
    _lines: JoinSet<()>,
}

impl BadLine {
    /// A line to a port on this machine; after so many bad connections it is good.
    pub async fn to(port: u16, bad: u32, seed: u64) -> BadLine {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let own = listener.local_addr().expect("its address").port();
        let report = Arc::new(Mutex::new(LineReport::default()));
        let mut lines = JoinSet::new();
        lines.spawn(accept(listener, port, bad, Random::new(seed), report.clone()));
        BadLine { port: own, report, _lines: lines }
    }

    /// What it has done so far.
    pub fn report(&self) -> LineReport {
        self.report.lock().expect("nobody panicked").clone()
    }
}

async fn accept(
    listener: TcpListener,
    port: u16,
    bad: u32,
    mut random: Random,
    report: Arc<Mutex<LineReport>>,
) {
    let mut lines = JoinSet::new();
    let mut number = 0;
    loop {
        let Ok((caller, _)) = listener.accept().await else { return };
        let fate = match number % 5 {
            _ if number >= bad => Fate::Good,
            0 => Fate::Repeated,
            1 => Fate::Cut(usize::try_from(200 + random.below(6000)).unwrap_or(200)),
            2 => Fate::Refused,
            3 => Fate::Slow,
            _ => Fate::Cut(usize::try_from(random.below(40_000)).unwrap_or(0)),
        };
        number += 1;
        // A connection that breaks off is what this is for.
        lines.spawn(carry(caller, port, fate, report.clone()));
        while lines.try_join_next().is_some() {}
    }
}

async fn carry(mut caller: TcpStream, port: u16, fate: Fate, report: Arc<Mutex<LineReport>>) {
    let count = |change: fn(&mut LineReport)| change(&mut report.lock().expect("no panic"));
    if matches!(fate, Fate::Refused) {
        count(|report| report.refused += 1);
        return;
    }
    let Ok(mut called) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    match fate {
        Fate::Repeated => {
            let Some(request) = first_request(&mut caller).await else { return };
            if called.write_all(&request).await.is_err() {
                return;
            }
            let answered = pass(&mut called, &mut caller, usize::MAX, false, true).await;
            let status = answer_to(&request, port).await;
            report.lock().expect("no panic").repeated.push(status);
            if answered.is_ok() {
                let _ = both(caller, called, usize::MAX, false).await;
            }
        }
        Fate::Cut(bytes) => {
            if both(caller, called, bytes, false).await {
                count(|report| report.cut += 1);
            }
        }
        Fate::Slow => {
            count(|report| report.slow += 1);
            both(caller, called, usize::MAX, true).await;
        }
        Fate::Refused | Fate::Good => {
            both(caller, called, usize::MAX, false).await;
        }
    }
}

/// Passes both ways until one ends; true = it was cut at its limit.
async fn both(caller: TcpStream, called: TcpStream, limit: usize, slow: bool) -> bool {
    let (mut from_caller, mut to_caller) = caller.into_split();
    let (mut from_called, mut to_called) = called.into_split();
    tokio::select! {
        _ = pass(&mut from_caller, &mut to_called, usize::MAX, slow, false) => false,
        back = pass(&mut from_called, &mut to_caller, limit, slow, false) => back == Ok(true),
    }
}

/// Passes bytes on; `Ok(true)` = the limit was reached. With `once`, one answer's worth: until
/// nothing more is there at once.
async fn pass(
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    limit: usize,
    slow: bool,
    once: bool,
) -> Result<bool, ()> {
    let mut chunk = vec![0; if slow { SLOW_CHUNK } else { CHUNK }];
    let mut passed = 0;
    loop {
        let count = from.read(&mut chunk).await.map_err(|_| ())?;
        if count == 0 {
            return Ok(false);
        }
        let count = count.min(limit - passed);
        to.write_all(&chunk[..count]).await.map_err(|_| ())?;
        passed += count;
        if passed >= limit {
            return Ok(true);
        }
        if slow {
            tokio::time::sleep(SLOW_PAUSE).await;
        }
        if once && count < CHUNK {
            return Ok(false);
        }
    }
}

/// The bytes of a connection's first request: its head, and as much body as it says.
async fn first_request(caller: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; CHUNK]);
    loop {
        let count = caller.read(&mut chunk).await.ok()?;
        if count == 0 {
            return None;
        }
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        let Some(end) = text.find("\r\n\r\n") else { continue };
        let length = text[..end].lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        if bytes.len() >= end + 4 + length {
            return Some(bytes);
        }
    }
}

/// The status line that the same bytes get once more.
async fn answer_to(request: &[u8], port: u16) -> String {
    let asked = async {
        let mut called = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        called.write_all(request).await.ok()?;
        let mut bytes = vec![0; CHUNK];
        let count = called.read(&mut bytes).await.ok()?;
        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
        text.lines().next().map(str::to_owned)
    };
    let answer = tokio::time::timeout(MAX_ANSWER_TIME, asked).await;
    answer.ok().flatten().unwrap_or_else(|| "no answer".into())
}
