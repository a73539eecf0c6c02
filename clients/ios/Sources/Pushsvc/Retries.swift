import Foundation

typealias Sleep = @Sendable (Double) async -> Void

/// Repeats what failed after a pause. It doubles from a second to ten minutes, with a random part,
/// and is never shorter than `Retry-After`, up to an hour of it.
struct Retries {
    private static let longest = 600.0
    private static let longestRetryAfter = 3600.0

    private let sleep: Sleep
    private var failures = 0
    private var notBefore = Date.distantPast
    private var waiting: Task<Void, Never>?

    init(_ sleep: Sleep?) {
        self.sleep = sleep ?? { seconds in try? await Task.sleep(nanoseconds: UInt64(seconds * 1e9)) }
    }

    /// Whether the service asked to be left alone for now.
    var isHeldBack: Bool { Date() < notBefore }

    /// The pause has passed.
    mutating func begin() { notBefore = .distantPast }

    mutating func succeeded() {
        waiting?.cancel()
        waiting = nil
        failures = 0
        notBefore = .distantPast
    }

    mutating func failed(_ error: PushError, again: @escaping @Sendable () async -> Void) {
        let backoff = min(Self.longest, pow(2, Double(min(failures, 10)))) * Double.random(in: 0.5...1)
        let told = min(Self.longestRetryAfter, max(0, error.retryAfter ?? 0))
        failures += 1
        notBefore = Date().addingTimeInterval(told)
        waiting?.cancel()
        waiting = Task { [sleep] in
            await sleep(max(backoff, told))
            if !Task.isCancelled { await again() }
        }
    }
}

/// Runs one piece of work of an actor at a time, in the order of the calls.
struct Queue {
    private var last: Task<Void, Never>?

    mutating func run<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) -> Task<Value, any Error> {
        let before = last
        let task = Task {
            await before?.value
            return try await work()
        }
        last = Task { _ = await task.result }
        return task
    }
}
