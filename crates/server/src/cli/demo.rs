//! `counterfoil demo`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;

use super::output::table;
use super::{Output, Session};
use crate::demo::{self, Progress};
use crate::sample::DEFAULT_STATIONS;
use crate::serve::{self, DEFAULT_ROLES};

/// How to run the demo.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Stations of the synthetic month
    #[arg(long, default_value_t = DEFAULT_STATIONS)]
    lines: u32,
    /// Where its database and files go [default: a new folder for temporary files]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Serve the demo's database afterwards, until asked to stop
    #[arg(long)]
    serve: bool,
}

/// Fewer stations leave nothing for the four cases; more belong to a benchmark.
const LINES: std::ops::RangeInclusive<u32> = 2000..=200_000;

pub(super) async fn run(session: &Session, args: Args) -> Result<Output> {
    let Args { lines, folder, serve } = args;
    anyhow::ensure!(
        LINES.contains(&lines),
        "--lines must be from {} to {}",
        LINES.start(),
        LINES.end()
    );
    let folder = folder.unwrap_or_else(|| {
        std::env::temp_dir().join(format!("counterfoil-demo-{}", std::process::id()))
    });
    anyhow::ensure!(
        !folder.join("demo.db").exists(),
        "{} holds a demo already; name another --folder",
        folder.display()
    );
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let progress = Progress::new(session.globals.quiet || session.globals.json);
    let done = demo::run(&session.config, &folder, lines, &progress).await?;
    let url = format!("sqlite:{}", done.database.display());
    let output = said(&done, &url);
    if serve {
        let mut config = session.config.clone();
        config.database.clone_from(&url);
        let db = Session {
            config: config.clone(),
            globals: session.globals.clone(),
            pulse: session.pulse.clone(),
        };
        let db = db.open().await?;
        serve::run(&db, &config, &DEFAULT_ROLES.into_iter().collect()).await?;
    }
    Ok(output)
}

fn said(done: &demo::Done, url: &str) -> Output {
    let rows: Vec<Vec<String>> = done
        .proofs
        .iter()
        .map(|proof| {
            let mark = if proof.holds { "●" } else { "◆" };
            vec![format!("{mark} {}", proof.what), proof.figures.clone()]
        })
        .collect();
    let failed = done.proofs.iter().any(|proof| !proof.holds);
    let found: Vec<Vec<String>> = done
        .found
        .iter()
        .map(|row| {
            let numbers = [row.made.to_string(), row.found.to_string()];
            let [made, found] = numbers;
            let words = [row.outcome.to_owned(), row.why.to_owned()];
            [vec![row.kind.to_owned(), row.cause.to_owned(), made, found], words.into()].concat()
        })
        .collect();
    let text = format!(
        "Synthetic month from seed {}. Order {} (id {}).\n\n{}\n\n{}\n\nLook around:\n  \
         counterfoil --database {url} order show {}\n  \
         counterfoil --database {url} order diff {} 1 2\n  \
         counterfoil --database {url} check\n\n\
         Its proof pack: {}",
        done.seed,
        done.order_no,
        done.order,
        table(&["PROVED", "FIGURES"], &rows),
        table(&["DIFFERENCE", "MADE BY", "MADE", "FOUND", "THEN", "WHY"], &found),
        done.order_no,
        done.order_no,
        done.database.with_file_name("proof.xlsx").display(),
    );
    let json = json!({
        "seed": done.seed, "database": url, "paymentOrderId": done.order,
        "orderNo": done.order_no, "proofs": done.proofs,
        "reconciliation": done.found,
    });
    Output::new(json, text).failed(failed)
}
