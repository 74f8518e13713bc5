//! How many CPUs this process may really use.
//!
//! With two, waiting for the other side by spinning is ten times faster than sleeping; with one it is ten times slower.
//! So the affinity mask is not enough: a container's quota may leave one CPU's worth of time on a machine of many.

use std::fs;

/// Whether two processes can run at the same time.
pub fn two_usable() -> bool {
    affinity_count() >= 2 && quota().is_none_or(|cpus| cpus >= 2.0)
}

fn affinity_count() -> usize {
    // SAFETY: `cpu_set_t` is plain data for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is writable and its size is given.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    if result != 0 {
        return 1;
    }
    // SAFETY: reads the set that was just filled.
    unsafe { libc::CPU_COUNT(&set) as usize }
}

/// The smallest quota of the control groups this process is in, in CPUs.
fn quota() -> Option<f64> {
    let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
    let v2 = membership.lines().find_map(|l| l.strip_prefix("0::"));
    let nested = v2.into_iter().flat_map(ancestors).filter_map(|p| read_v2(&format!("/sys/fs/cgroup{p}/cpu.max")));
    let v1 = read_v1("/sys/fs/cgroup/cpu");
    nested.chain(v1).fold(None, |least: Option<f64>, q| Some(least.map_or(q, |l| l.min(q))))
}

/// `/a/b`, `/a`, and the root.
fn ancestors(path: &str) -> Vec<String> {
    let mut path = path.trim_end_matches('/');
    let mut all = vec![path.to_owned()];
    while let Some((parent, _)) = path.rsplit_once('/') {
        all.push(parent.to_owned());
        path = parent;
    }
    all
}

fn read_v2(file: &str) -> Option<f64> {
    parse_v2(&fs::read_to_string(file).ok()?)
}

fn parse_v2(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

fn read_v1(directory: &str) -> Option<f64> {
    let quota: f64 = fs::read_to_string(format!("{directory}/cpu.cfs_quota_us")).ok()?.trim().parse().ok()?;
    let period: f64 = fs::read_to_string(format!("{directory}/cpu.cfs_period_us")).ok()?.trim().parse().ok()?;
    (quota > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_read_in_cpus() {
        assert_eq!(parse_v2("150000 100000\n"), Some(1.5));
        assert_eq!(parse_v2("max 100000\n"), None);
        assert_eq!(parse_v2(""), None);
    }

    #[test]
    fn a_group_and_all_above_it_count() {
        assert_eq!(ancestors("/a/b"), ["/a/b", "/a", ""]);
        assert_eq!(ancestors("/"), [""]);
    }
}
