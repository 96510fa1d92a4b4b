//! Likely problems: files of this machine that connections need.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use ssh::HostPort;

use super::{ClusterConfig, Config};

/// Each says what to do.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let mut found = Vec::new();
    if config.clusters.is_empty() {
        found.push(
            "no cluster is configured, so every job is refused; set SLURM_USER and SLURM_HOSTNAME, add a [[clusters]] table, or \
             send POST /clusters"
                .to_owned(),
        );
    }
    if let Some(file) = config.file.as_deref().filter(|_| config.settings.database.url.is_some()) {
        let open = fs::metadata(file).is_ok_and(|found| found.permissions().mode() & 0o044 != 0);
        if open && fs::read_to_string(file).is_ok_and(|text| names_database(&text)) {
            found.push(format!(
                "other users can read {0}, which holds the database URL; run: chmod 600 {0}",
                file.display()
            ));
        }
    }
    for cluster in &config.clusters {
        key(cluster, &mut found);
        hosts(cluster, &mut found);
    }
    found
}

/// Whether the file sets the database URL. A commented example does not count.
fn names_database(text: &str) -> bool {
    let keys = text.lines().filter_map(|line| line.trim().split_once('='));
    keys.into_iter().any(|(key, value)| matches!(key.trim(), "url" | "database.url") && value.contains("://"))
}

fn key(cluster: &ClusterConfig, found: &mut Vec<String>) {
    let name = &cluster.cluster.name;
    let mut say = |text: String| found.push(format!("cluster {name}: {text}"));
    match &cluster.ssh.key_path {
        None if cluster.ssh.agent_socket.is_none() => say(
            "there is neither a key nor an agent, so logins will fail; set key_path (SSH_KEY_PATH) or agent_socket \
             (SSH_AUTH_SOCK)"
                .to_owned(),
        ),
        None => {}
        Some(path) => match fs::metadata(path) {
            Err(error) => say(format!(
                "the key {} cannot be read ({error}); set key_path (SSH_KEY_PATH) to a private key",
                path.display()
            )),
            Ok(file) if file.permissions().mode() & 0o077 != 0 => {
                say(format!("other users can read the key {0}; run: chmod 600 {0}", path.display()));
            }
            Ok(_) => {}
        },
    }
    if let Some(socket) = &cluster.ssh.agent_socket
        && !socket.exists()
    {
        say(format!(
            "there is no agent at {}; start one, or set agent_socket (SSH_AUTH_SOCK)",
            socket.display()
        ));
    }
}

fn hosts(cluster: &ClusterConfig, found: &mut Vec<String>) {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let mut lines = cluster.ssh.pinned_host_keys.clone();
    for path in &cluster.ssh.known_hosts {
        lines.extend(read(path).lines().map(str::to_owned));
    }
    let file =
        cluster.ssh.known_hosts.first().map_or("known_hosts".into(), |path| path.display().to_string());
    for host in &cluster.ssh.hosts {
        if !may_be_known(host, &lines) {
            found.push(format!(
                "cluster {}: no host key of {host} is known, so the service will refuse it; run `ssh-keyscan -p {} {}`, \
                 compare the fingerprint with the one that the cluster's administrator publishes, and add the line to {file} \
                 or to host_keys",
                cluster.cluster.name,
                host.port(),
                host.host(),
            ));
        }
    }
}

/// Whether the lines may name the host. A hashed name counts as a match, because this is only advice: the connection decides.
pub(super) fn may_be_known(host: &HostPort, lines: &[String]) -> bool {
    let wanted =
        if host.port() == 22 { host.host().to_owned() } else { format!("[{}]:{}", host.host(), host.port()) };
    lines.iter().map(|line| line.trim()).filter(|line| !line.starts_with(['#', '@'])).any(|line| {
        let names = line.split_whitespace().next().unwrap_or_default();
        let plain = |name: &str| name.eq_ignore_ascii_case(&wanted) || name.contains(['*', '?']);
        names.starts_with("|1|") || names.split(',').any(plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_url_in_a_comment_does_not_count() {
        assert!(names_database("[database]\nurl = \"postgres://u:p@h/d\""));
        assert!(names_database("database.url=\"postgres://u:p@h/d\""));
        assert!(!names_database("[database]\n# url = \"postgres://u:p@h/d\"\nmax_connections = 16"));
        assert!(!names_database("[telemetry]\notlp_endpoint = \"http://h\""));
    }

    #[test]
    fn a_host_is_known_by_its_name_and_port() {
        let known = |host: &str, line: &str| may_be_known(&host.parse().unwrap(), &[line.to_owned()]);
        assert!(known("login1", "login1,10.0.0.1 ssh-ed25519 AAAA"));
        assert!(known("login1:2222", "[login1]:2222 ssh-ed25519 AAAA"));
        assert!(!known("login1:2222", "login1 ssh-ed25519 AAAA"));
        assert!(!known("login1", "# login1 ssh-ed25519 AAAA"));
        assert!(!known("login1", ""));
        assert!(known("login1", "|1|salt|hash ssh-ed25519 AAAA"));
    }
}
