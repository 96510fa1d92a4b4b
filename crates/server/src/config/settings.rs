//! Every setting of the service. The comments here are the comments of `deploy/config.example.toml`; `make config-example` renews it.

#![expect(clippy::struct_field_names, reason = "the fields of Telemetry have the names of the keys")]

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

use secrecy::SecretString;

pub(crate) use super::kinds::{AuthMode, LogFormat, TokenKind};
use super::{
    cluster_settings::ClusterSettings,
    declare::{self, Entry, Item, Key, Kind, Report, Source, Visitor, section},
};

section! {
    /// tao-slurm: every setting with its default. A setting without a default is a comment with an example.
    ///
    /// The service reads this file from --config, TAO_SLURM_CONFIG or ./tao-slurm.toml. Every key is optional. Environment variables
    /// override the file, and can replace it: SLURM_USER and SLURM_HOSTNAME are enough to start.
    /// `tao-slurm check-config` shows the effective configuration.
    ///
    /// A duration is a string: "500ms", "5s", "2m", "1h 30m", "90d". A path may begin with ~/ for the home directory.
    Settings {
        /// The service keeps its own files here: the encryption key and, without database.url, a private Postgres.
        /// Default: $XDG_DATA_HOME/tao-slurm or ~/.local/share/tao-slurm; for root /var/lib/tao-slurm.
        data_dir: PathBuf, env "TAO_SLURM_DATA_DIR", example "\"/var/lib/tao-slurm\"";
        server: Server;
        database: Database;
        auth: Auth;
        secrets: Secrets;
        ssh: Ssh;
        worker: Worker;
        log: Log;
        telemetry: Telemetry;
        tao: Tao;
        webhooks: Webhooks;
        clusters: Vec<ClusterSettings>;
    }
}

section! {
    /// The HTTP API and its limits.
    Server {
        /// The address of the API. `serve --bind` overrides it.
        bind: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080)), env "TAO_SLURM_BIND";
        /// The largest request body in bytes.
        body_limit_bytes: usize = 10 * 1024 * 1024;
        /// The largest request head in bytes, including the URL. A larger head gets a 431, a longer URL a 414.
        header_limit_bytes: usize = 32 * 1024;
        /// The time for a request head to arrive. An idle connection closes after the same time.
        header_timeout: Duration = Duration::from_secs(30);
        /// The time for a request body to arrive. After it the client gets a 408.
        body_timeout: Duration = Duration::from_secs(30);
        /// The longest time for a request, including its body. A log from a slow cluster takes up to 30 s.
        /// The `?wait=` of a request (at most 60 s) is added to it.
        request_timeout: Duration = Duration::from_secs(40);
        /// How long a client may take nothing of its answer or stream. After it the connection closes.
        write_timeout: Duration = Duration::from_secs(30);
        /// The most memory in bytes for large request bodies, and for large answers that are not sent yet. A request beyond it gets a
        /// 503 with `Retry-After`.
        buffer_bytes: usize = 128 * 1024 * 1024;
        /// The most connections at a time. A few more are accepted to answer probes; further ones are closed.
        max_connections: usize = 4096;
        /// The most connections of one address; an IPv6 network of 64 bits is one address. Further ones are closed. Behind a proxy,
        /// all clients have the proxy's address.
        max_connections_per_address: usize = 2048;
        /// The most clusters in the database, which POST /clusters adds to those of this file.
        max_clusters: u32 = 64;
        /// The average requests per second of each token, in each API process; 0 for no limit. A client above the limit gets a 429
        /// with `Retry-After`.
        rate_limit: u32 = 1000;
        /// The most requests that a token may send at once after a pause.
        rate_burst: u32 = 2000;
        /// Origins of web pages that may call the API from a browser, or ["*"] for all.
        cors_origins: Vec<String>, example "[\"https://dashboard.example.org\"]";
        /// How long the service remembers an Idempotency-Key. A request repeated later runs again.
        idempotency_keep: Duration = Duration::from_hours(24);
        /// How long a stopping service waits for requests and worker steps before it cuts them off. Event and log streams and
        /// `?wait=` requests end at once. A second signal ends the wait.
        drain_timeout: Duration = Duration::from_mins(1);
    }
}

section! {
    /// The Postgres database.
    Database {
        /// The database to use. Without it the service runs a private Postgres in data_dir, with the programs of this machine.
        /// The URL holds a password: give this file mode 0600, or set the environment variable.
        url: Option<SecretString>, env "DATABASE_URL", example "\"postgres://tao_slurm:PASSWORD@db.example.org:5432/tao_slurm\"";
        /// The most connections of each process.
        max_connections: u32 = 16;
        /// How long a starting process waits for a database that does not answer yet.
        startup_timeout: Duration = Duration::from_secs(30), env "TAO_SLURM_DATABASE_STARTUP_TIMEOUT";
        /// Delete finished jobs after this long, at least 1h, with their attempts and events. Their files on the cluster stay.
        /// Default: keep them.
        keep_ended_jobs: Option<Duration>, env "TAO_SLURM_KEEP_ENDED_JOBS", example "\"90d\"";
    }
}

section! {
    /// Who may call the API.
    Auth {
        /// "tokens": callers send a token; `tao-slurm token create --owner NAME` makes one.
        /// "disabled": every caller may do everything. server.bind must then be a loopback address.
        mode: AuthMode, env "TAO_SLURM_AUTH";
        jwt: Option<Jwt>;
    }
}

section! {
    /// With this section callers may also send a JWT from an issuer. A token that contains a dot is read as a JWT.
    Jwt {
        /// The `iss` of the tokens.
        issuer: String, required "\"https://login.example.org/\"";
        /// The `aud` of a token must name one of these.
        audience: Vec<String>, required "[\"tao-slurm\"]";
        /// The address of the issuer's public keys (a JSON Web Key Set): HTTPS, or HTTP on this machine. The service follows no
        /// redirect, uses no proxy, and reads at most 256 KiB within 5 s.
        jwks_url: Option<String>, example "\"https://login.example.org/keys\"";
        /// A file with the keys, instead of jwks_url. It may be replaced while the service runs.
        jwks_file: Option<PathBuf>, example "\"/etc/tao-slurm/jwks.json\"";
        /// Certificates in PEM of further authorities for jwks_url and auth.jwt.login.
        ca_file: Option<PathBuf>, example "\"/etc/tao-slurm/ca.pem\"";
        /// The service reads the keys again after this time, so a withdrawn key stays valid for at most as long. If the keys cannot
        /// be read, the old ones stay valid.
        jwks_keep: Duration = Duration::from_mins(10);
        /// A token with an unknown key makes the service read the keys again, at most once in this time.
        jwks_pause: Duration = Duration::from_secs(30);
        /// The accepted signatures, of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA. Shared secrets are not supported.
        algorithms: Vec<String> = ["RS256", "ES256", "EdDSA"].map(str::to_owned).to_vec();
        /// The largest difference between the issuer's clock and the server clock, at most 5m.
        leeway: Duration = Duration::from_secs(30);
        /// The claim that names the owner, or a JSON pointer such as "/user/name" to a value inside a claim.
        owner_claim: String = "sub".to_owned();
        /// A prefix for the owner's name. It keeps JWT owners apart from the owners of the service's own tokens. With "" an owner of
        /// the same name is the same owner, so the issuer decides who sees whose jobs.
        owner_prefix: String = "jwt:".to_owned();
        /// The claim with the scopes: a list, or a string separated by spaces. It may be a JSON pointer.
        scope_claim: String = "scope".to_owned();
        /// Maps the issuer's scopes to read, write and admin. If it is empty, those three names mean themselves; otherwise all other
        /// scopes mean nothing.
        scope_words: BTreeMap<String, Vec<String>>, example "{ gpu-users = [\"read\", \"write\"], gpu-admins = [\"admin\"] }";
        login: Option<Login>;
    }
}

section! {
    /// With this section visitors of the console can log in at the issuer (OpenID Connect), instead of entering a token. The service
    /// finds the issuer's addresses in ISSUER/.well-known/openid-configuration, so auth.jwt.issuer must be an https:// address.
    Login {
        /// The name of this service at the issuer. Register it there as a client for the authorization code flow with PKCE.
        client_id: String, required "\"tao-slurm-console\"";
        /// A file with the client's secret, readable by the service alone. It is read at each log-in, so it may be replaced. Without it the
        /// client is public.
        client_secret_file: Option<PathBuf>, example "\"/etc/tao-slurm/client-secret\"";
        /// The address to which the issuer sends visitors back, as it is registered there: the console's own address with
        /// /ui/login/callback. HTTPS, or HTTP on this machine.
        redirect_url: String, required "\"https://console.example.org/ui/login/callback\"";
        /// The scopes that the log-in asks for.
        scopes: Vec<String> = ["openid"].map(str::to_owned).to_vec(), example "[\"openid\", \"groups\"]";
        /// The token of the log-in that becomes the visitor's: "access_token", or "id_token" for issuers whose access tokens are no JWTs
        /// for this service. For an ID token auth.jwt.audience must contain client_id.
        token: TokenKind;
    }
}

section! {
    /// The encryption of job secrets in the database.
    Secrets {
        /// The key file: 32 bytes in base64, mode 0600. The service creates it. All processes on one database need the same key.
        /// Default: secrets.key in data_dir.
        key_file: PathBuf, example "\"/var/lib/tao-slurm/secrets.key\"";
    }
}

section! {
    /// SSH keys for clusters that POST /clusters adds.
    Ssh {
        /// The directory of the private keys, one file each, without passphrase, readable only by the service.
        /// Default: ssh-keys in data_dir.
        key_directory: PathBuf, env "TAO_SLURM_SSH_KEY_DIRECTORY", example "\"/var/lib/tao-slurm/ssh-keys\"";
    }
}

section! {
    /// The worker submits, polls and ends Slurm jobs.
    Worker {
        /// The address of /livez, /readyz and /metrics for `serve --role worker`. `serve --bind` overrides it. Default: none.
        bind: Option<SocketAddr>, env "TAO_SLURM_WORKER_BIND", example "\"127.0.0.1:8081\"";
        /// Another worker takes over the work of a dead worker after this time.
        lease: Duration = Duration::from_secs(30);
        /// The most jobs that one remote command submits or ends.
        batch_size: u32 = 128;
        /// The shortest time between two polls of a cluster, used while jobs are young or change.
        poll_min: Duration = Duration::from_secs(5), env "TAO_SLURM_POLL_MIN";
        /// The longest time between two polls of a cluster, used while nothing changes.
        poll_max: Duration = Duration::from_mins(1), env "TAO_SLURM_POLL_MAX";
        /// The time between two reads of a cluster's partitions, their limits and the states of their nodes.
        partitions_every: Duration = Duration::from_mins(5), env "TAO_SLURM_PARTITIONS_EVERY";
        /// A job is lost after squeue and sacct have not known it for this long without interruption.
        missing_grace: Duration = Duration::from_mins(5), env "TAO_SLURM_MISSING_GRACE";
        /// How long the worker waits, after Slurm reports a job finished, for its exit record and last status line to become visible
        /// on the login host.
        finish_grace: Duration = Duration::from_mins(1), env "TAO_SLURM_FINISH_GRACE";
        /// The worker cancels a Slurm job that still holds its nodes this long after it reported SUCCESS or FAILURE.
        release_grace: Duration = Duration::from_mins(2), env "TAO_SLURM_RELEASE_GRACE";
        /// The wait before the first retry after an infrastructure failure. It doubles with each retry.
        retry_wait: Duration = Duration::from_secs(15), env "TAO_SLURM_RETRY_WAIT";
        /// The longest wait before a retry.
        retry_wait_max: Duration = Duration::from_mins(10);
    }
}

section! {
    /// The log on standard error.
    Log {
        /// "human" or "json".
        format: LogFormat, env "TAO_SLURM_LOG_FORMAT";
        /// A level, or levels by module, such as "info,worker=debug". sqlx repeats the notices of Postgres at `info`.
        filter: String = "info,sqlx=warn".to_owned(), env "TAO_SLURM_LOG";
    }
}

section! {
    /// OpenTelemetry traces. A trace holds a request, the worker steps for it, and their commands on the cluster.
    Telemetry {
        /// The base URL of a collector that takes OTLP over HTTP; the service adds `/v1/traces`. Default: no traces.
        otlp_endpoint: Option<String>, env "TAO_SLURM_OTLP_ENDPOINT", example "\"http://127.0.0.1:4318\"";
        /// A file with HTTP headers for the collector, one a line, such as `Authorization: Bearer …`. Give it mode 0600.
        otlp_headers_file: Option<PathBuf>, env "TAO_SLURM_OTLP_HEADERS_FILE", example "\"/etc/tao-slurm/otlp-headers\"";
        /// The share of requests to trace, from 0 to 1. A `traceparent` in the request overrides it.
        otlp_sample: f64 = 1.0, env "TAO_SLURM_OTLP_SAMPLE";
    }
}

section! {
    /// Jobs that TAO's own services post to /api/v1/internal/container_job. They name a network and no image.
    Tao {
        /// The image for networks that are not in tao.images. Without it such a job is refused.
        default_image: Option<String>, env "TAO_SLURM_TAO_IMAGE", example "\"nvcr.io/nvidia/tao/tao-toolkit:6.26.3-pyt\"";
        /// The image for each network.
        images: BTreeMap<String, String>, example "{ cosmos-rl = \"/lustre/images/cosmos-rl.sqsh\", dino = \"nvcr.io/nvidia/tao/tao-toolkit:6.26.3-pyt\" }";
    }
}

section! {
    /// Webhooks report each change of a job's status. They go to public addresses over HTTPS.
    Webhooks {
        /// Networks that are not public and may be called too, also over http://.
        allowed_networks: Vec<String>, example "[\"10.1.0.0/16\", \"fd00::/8\"]";
        /// The time for a receiver to answer.
        timeout: Duration = Duration::from_secs(10);
        /// Certificates in PEM of further authorities for receivers.
        ca_file: Option<PathBuf>, example "\"/etc/tao-slurm/ca.pem\"";
        /// The service gives a message up after this many attempts, which take three to five hours unless the receiver asks for longer
        /// pauses. POST /jobs/{id}/webhook/redeliver sends it again.
        max_attempts: u32 = 15;
    }
}

macro_rules! optional {
    ($($section:ty),+) => { $(
        impl Entry for Option<$section> {
            fn read(&mut self, source: Source<'_>, _: &Key, at: &str, report: &mut Report<'_>) {
                if let Source::Value(_) = source {
                    declare::read_section(self.get_or_insert_default(), source, at, report);
                }
            }

            fn visit(&self, _: &'static Key, at: &str, visit: &mut Visitor<'_>) {
                if let Some(section) = self {
                    declare::visit_section(section, at, Kind::Optional, visit);
                }
            }
        }
    )+ };
}

optional!(Jwt, Login);

impl Entry for Vec<ClusterSettings> {
    fn read(&mut self, source: Source<'_>, _: &Key, at: &str, report: &mut Report<'_>) {
        match source {
            Source::Value(toml::Value::Array(tables)) => {
                for (index, table) in tables.iter().enumerate() {
                    let mut cluster = ClusterSettings::default();
                    declare::read_section(
                        &mut cluster,
                        Source::Value(table),
                        &format!("{at}[{}]", index + 1),
                        report,
                    );
                    self.push(cluster);
                }
            }
            Source::Value(value) => {
                report(at, format!("{} is not a list of tables; write [[{at}]]", declare::seen(value)));
            }
            // `cluster_settings::with_environment` finds the cluster that they are for.
            Source::Variables(_) => {}
        }
    }

    fn visit(&self, _: &'static Key, at: &str, visit: &mut Visitor<'_>) {
        for cluster in self {
            declare::visit_section(cluster, at, Kind::Element, visit);
        }
    }
}

impl Settings {
    /// The defaults, with every section that can be there.
    pub(crate) fn example() -> Self {
        let jwt = Jwt { login: Some(Login::default()), ..Jwt::default() };
        let auth = Auth { jwt: Some(jwt), ..Auth::default() };
        Self { auth, clusters: vec![ClusterSettings::default()], ..Self::default() }
    }

    pub(crate) fn walk(&self, visit: &mut Visitor<'_>) {
        declare::visit_section(self, "", Kind::Table, visit);
    }
}

/// The environment variables of a key, as errors name them after its path: ` (SLURM_USER, SSH_USER)`.
pub(crate) fn variables_of(path: &str) -> String {
    let mut names = String::new();
    Settings::example().walk(&mut |at, item| match item {
        Item::Key { key, .. } if at == path && !key.variables.is_empty() => {
            names = format!(" ({})", key.variables.join(", "));
        }
        _ => {}
    });
    names
}
