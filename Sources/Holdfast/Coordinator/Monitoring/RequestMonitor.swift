import HoldfastStore
import Synchronization

/// Counts a coordinator's requests, and passes them to observers.
final class RequestMonitor: Sendable {
  typealias Observer = @Sendable (StoreTrace) -> Void

  private let fetches = Atomic(0)
  private let rows = Atomic(0)
  private let relationships = Atomic(0)
  private let keyReservations = Atomic(0)
  private let saves = Atomic(0)
  private let others = Atomic(0)
  /// Whether there are observers. Otherwise requests are only counted.
  private let hasObservers = Atomic(false)
  /// Guards the observers, which several threads add, remove and call.
  private let observers = Mutex<[(number: Int, observer: Observer)]>([])
  private let observerCount = Atomic(0)

  var isObserved: Bool { hasObservers.load(ordering: .relaxed) }

  var counts: RequestCounts {
    var counts = RequestCounts()
    counts.fetches = fetches.load(ordering: .relaxed)
    counts.rows = rows.load(ordering: .relaxed)
    counts.relationships = relationships.load(ordering: .relaxed)
    counts.keyReservations = keyReservations.load(ordering: .relaxed)
    counts.saves = saves.load(ordering: .relaxed)
    counts.others = others.load(ordering: .relaxed)
    return counts
  }

  func countFetch() { fetches.add(1, ordering: .relaxed) }
  func countRows() { rows.add(1, ordering: .relaxed) }
  func countRelationships() { relationships.add(1, ordering: .relaxed) }
  func countKeyReservation() { keyReservations.add(1, ordering: .relaxed) }
  func countSave() { saves.add(1, ordering: .relaxed) }
  func countOther() { others.add(1, ordering: .relaxed) }

  func add(_ observer: @escaping Observer) -> Int {
    let number = observerCount.add(1, ordering: .relaxed).newValue
    observers.withLock {
      $0.append((number, observer))
      hasObservers.store(true, ordering: .relaxed)
    }
    return number
  }

  func remove(_ number: Int) {
    // Released outside the lock, because an observer may hold the last reference to another registration.
    let removed = observers.withLock { observers in
      let removed = observers.filter { $0.number == number }
      observers.removeAll { $0.number == number }
      hasObservers.store(!observers.isEmpty, ordering: .relaxed)
      return removed
    }
    withExtendedLifetime(removed) {}
  }

  func tell(_ trace: StoreTrace) {
    // Outside the lock, because an observer may remove itself.
    for (_, observer) in observers.withLock({ $0 }) { observer(trace) }
  }
}
