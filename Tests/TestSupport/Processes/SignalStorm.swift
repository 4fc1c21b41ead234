#if os(Linux)
  import Foundation
  import Glibc
  import Synchronization

  /// Sends this thread a thousand signals per second. The handler makes system calls fail with `EINTR`.
  package final class SignalStorm: Sendable {
    private static let received = Atomic<Int>(0)
    private let isOver = Atomic<Bool>(false)

    package init() {
      var action = sigaction()
      action.__sigaction_handler.sa_handler = { _ in SignalStorm.received.add(1, ordering: .relaxed) }
      action.sa_flags = 0
      precondition(sigaction(SIGUSR1, &action, nil) == 0)
      // Test threads block signals.
      var none = sigset_t()
      sigemptyset(&none)
      pthread_sigmask(SIG_SETMASK, &none, nil)
      let target = pthread_self()
      Thread.detachNewThread { [self] in
        while !isOver.load(ordering: .relaxed) {
          pthread_kill(target, SIGUSR1)
          usleep(1000)
        }
      }
    }

    /// The number of signals received.
    package var count: Int { Self.received.load(ordering: .relaxed) }

    package func stop() { isOver.store(true, ordering: .relaxed) }
  }
#endif
