//! The two sides: a database, a configuration and a process each.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine as _;
use counterfoil_db::{Clock, Db};
use counterfoil_protocol::signing::SigningKey;
use counterfoil_reconcile::form_centre::{CentreSettings, list};
use counterfoil_reconcile::service_hall::HallSettings;
use counterfoil_reconcile::wire::Coordinate;
use tokio::process::{Child, Command};

use super::super::{Progress, open};
use super::tap::Tap;
use crate::findings;

/// The centre's app key.
pub const CENTRE: &str = "form-centre";
/// The hall's.
pub const HALL: &str = "service-hall";
/// The school of all answers.
pub const SCHOOL: &str = "school-1";
/// Their form.
pub const FORM: &str = "roof-survey";

/// How often a task is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The longest that a process may take to listen, and a task to end.
const MAX_START: Duration = Duration::from_secs(20);
const MAX_TASK: Duration = Duration::from_secs(600);

/// What the demo's task is about.
pub fn coordinate() -> Coordinate {
    Coordinate { consumer: HALL.into(), school: SCHOOL.into(), form: FORM.into(), answer: None }
}

/// Both sides.
pub struct Sides {
    /// The centre's database.
    pub centre: Db,
    /// The hall's.
    pub hall: Db,
    /// What lies between them.
    pub tap: Tap,
    count: u32,
    folder: PathBuf,
    centre_address: SocketAddr,
    hall_address: SocketAddr,
}

/// The two processes.
pub struct Serving([Child; 2]);

impl Sides {
    /// Makes both databases and what the processes will read.
    pub async fn make(folder: &Path, count: u32) -> Result<Sides> {
        let centre = open(&folder.join("centre.db"), Clock::Database).await?;
        let hall = open(&folder.join("hall.db"), Clock::Database).await?;
        let (centre_address, hall_address) = (free_address()?, free_address()?);
        let tap = Tap::to(centre_address).await?;
        let folder = folder.to_owned();
        let sides = Sides { centre, hall, tap, count, folder, centre_address, hall_address };
        sides.configure()?;
        Ok(sides)
    }

    /// As the centre's process has it, for what the demo does in its place.
    pub fn centre_settings(&self) -> CentreSettings {
        let (max_rows, max_pages) = self.limits();
        CentreSettings {
            source_app_key: CENTRE.into(),
            max_rows,
            max_pages,
            ..CentreSettings::default()
        }
    }

    /// As the hall's process has it.
    pub fn hall_settings(&self) -> HallSettings {
        HallSettings {
            app_key: HALL.into(),
            source_app_key: CENTRE.into(),
            ..HallSettings::default()
        }
    }

    /// The shipped limits, or room for a larger demo.
    fn limits(&self) -> (i64, i64) {
        let shipped = CentreSettings::default();
        let rows = shipped.max_rows.max(i64::from(self.count));
        (rows, shipped.max_pages.max(rows / i64::from(shipped.page_size) + 1))
    }

    fn configure(&self) -> Result<()> {
        let (centre_key, hall_key) = (new_key()?, new_key()?);
        let (rows, pages) = self.limits();
        let Sides { centre_address, hall_address, tap, .. } = self;
        let centre = format!(
            "server.listen = \"{centre_address}\"\n[signing]\napp-key = \"{CENTRE}\"\n\
             private-key = \"{}\"\n[apps.{HALL}]\nkeys = [{{ key = \"{}\" }}]\n\
             [fc.answer.reconcile]\ndispatch-enabled = true\nscan-interval-ms = 40\n\
             scan-initial-delay-ms = 0\nmax-rows = {rows}\nmax-pages = {pages}\n\
             targets.{HALL} = \"http://{hall_address}\"\n",
            centre_key.0, hall_key.1
        );
        let hall = format!(
            "server.listen = \"{hall_address}\"\n[signing]\napp-key = \"{HALL}\"\n\
             private-key = \"{}\"\n[apps.{CENTRE}]\nkeys = [{{ key = \"{}\" }}]\n\
             [svchall.answer-reconcile]\nenabled = true\ncentre-url = \"http://{}\"\n\
             source-app-key = \"{CENTRE}\"\nscan-interval-ms = 40\nscan-initial-delay-ms = 0\n",
            hall_key.0, centre_key.1, tap.address
        );
        for (name, text) in [("centre", centre), ("hall", hall)] {
            let database = self.folder.join(format!("{name}.db"));
            let text = format!("database = \"sqlite:{}\"\n{text}", database.display());
            std::fs::write(self.folder.join(format!("{name}.toml")), text)?;
        }
        Ok(())
    }

    /// Starts both processes, and waits until both listen.
    pub async fn serve(&self) -> Result<Serving> {
        let serving = Serving([self.start("centre")?, self.start("hall")?]);
        for address in [self.centre_address, self.hall_address] {
            let listens = async {
                while tokio::net::TcpStream::connect(address).await.is_err() {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            };
            tokio::time::timeout(MAX_START, listens)
                .await
                .with_context(|| format!("no process listens on {address}"))?;
        }
        Ok(serving)
    }

    fn start(&self, role: &str) -> Result<Child> {
        let own = std::env::current_exe().context("the path of this program")?;
        let mut command = Command::new(own);
        // The person's own settings are for the person's own database.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("COUNTERFOIL_") {
                command.env_remove(name);
            }
        }
        command
            .arg("--config")
            .arg(self.folder.join(format!("{role}.toml")))
            .args(["--quiet", "serve", "--role", role])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command.spawn().with_context(|| format!("the {role}'s process"))
    }

    /// Waits for a task's end; shows what the hall has reported meanwhile.
    pub async fn ended(&self, task: &str, progress: &Progress) -> Result<String> {
        let ended = async {
            loop {
                let (task, reports) = list::one(&self.centre, task).await?;
                if task.is_over() {
                    return anyhow::Ok(task.task_id);
                }
                if let Some(report) = reports.last() {
                    progress.step(&findings::line(&report.counts));
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(MAX_TASK, ended).await.context("the task does not end")?
    }
}

impl Serving {
    /// Ends both.
    pub async fn stop(self) -> Result<()> {
        for mut child in self.0 {
            child.kill().await.context("a process could not be ended")?;
        }
        Ok(())
    }
}

fn free_address() -> Result<SocketAddr> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// A private key and its public half.
fn new_key() -> Result<(String, String)> {
    let private = base64::engine::general_purpose::STANDARD.encode(rand::random::<[u8; 32]>());
    let public = SigningKey::read("ed25519", &private)?.public().context("a public half")?;
    Ok((private, public))
}
