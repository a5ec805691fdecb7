/// One verdict for a test that runs on several ranks.
#pragma once

namespace hcp {

/// To be called once between MPI_Init and RUN_ALL_TESTS on every rank. From then on
/// * a test case that fails on one rank fails on all of them, so the exit statuses are equal;
/// * rank 0 alone prints: every failure with its rank, file and line;
/// * a rank that failed and whose peers do not reach the end of the case within 10 s (they wait for a message
///   that will not come) prints its failures itself and aborts the job.
/// The checks themselves never communicate; what is exchanged here bypasses the PMPI layer of the tests.
void report_failures_of_all_ranks();

}  // namespace hcp
