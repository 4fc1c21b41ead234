internal import BenchmarkRunner
internal import Holdfast
internal import HoldfastMemoryStore

/// Measures accesses to typed properties: of a Swift class, and of managed objects with accessors by hand and by macros.
///
/// The managed objects are in memory and aren't faults.
public struct PropertyCost {
  /// The cost of one access.
  public struct Access: Sendable {
    /// What is accessed.
    public let title: String
    /// Nanoseconds for a stored property of a Swift class.
    public let plain: Double
    /// Nanoseconds for an accessor written by hand.
    public let handwritten: Double
    /// Nanoseconds for an accessor of a macro; nil if the program has no macros.
    public let macros: Double?
  }

  /// Whether the program was compiled with macros.
  public static var hasMacros: Bool {
    #if Macros
      true
    #else
      false
    #endif
  }

  private static let count = 1000
  private let contexts: [ManagedObjectContext]
  private let plain: [PlainSample]
  private let handwritten: [HandwrittenSample]
  #if Macros
    private let macros: [MacroSample]
  #endif

  /// Creates a thousand objects of each class.
  public init() throws {
    plain = PropertyCost.filled((0..<PropertyCost.count).map { _ in PlainSample() })
    let coordinator = try PersistentStoreCoordinator(model: ManagedObjectModel(entities: [HandwrittenSample.entity]), store: .memory())
    let context = try ManagedObjectContext(coordinator: coordinator, classes: [HandwrittenSample.self])
    handwritten = PropertyCost.filled((0..<PropertyCost.count).map { _ in context.insert(HandwrittenSample.self) })
    try context.save()
    var contexts = [context]
    #if Macros
      let other = try PersistentContainer(for: MacroSample.self, store: .memory()).newContext()
      macros = PropertyCost.filled((0..<PropertyCost.count).map { _ in other.insert(MacroSample.self) })
      try other.save()
      contexts.append(other)
    #endif
    self.contexts = contexts
  }

  private static func filled<Sample: PropertySample>(_ objects: [Sample]) -> [Sample] {
    for (index, object) in objects.enumerated() {
      (object.whole, object.real) = (index, Double(index) / 2)
      (object.short, object.long) = ("name \(index)", "a name of forty bytes or more, number \(index)")
      object.partner = objects[(index + 1) % objects.count]
    }
    return objects
  }

  /// The processor times of all accesses: the least of all rounds, in which the classes take turns.
  ///
  /// Reads come before writes, so they read rows as the store returned them.
  public func accesses(rounds: Int, passes: Int) -> [Access] {
    PropertyAccess.allCases.map { access in
      var (plain, handwritten, macros) = (Double.infinity, Double.infinity, Double.infinity)
      for _ in 0..<rounds {
        plain = min(plain, time(access, self.plain, passes))
        handwritten = min(handwritten, time(access, self.handwritten, passes))
        #if Macros
          macros = min(macros, time(access, self.macros, passes))
        #endif
      }
      return Access(
        title: access.rawValue, plain: plain, handwritten: handwritten, macros: PropertyCost.hasMacros ? macros : nil)
    }
  }

  /// The nanoseconds of processor time for reading an `Int` in a function that receives the object: the least of all rounds.
  ///
  /// An array's objects are retained and released at each access, and a parameter isn't. Call it before ``accesses(rounds:passes:)``, which
  /// writes.
  public func readOfParameter(rounds: Int, passes: Int) -> Double {
    let count = passes * PropertyCost.count
    let times = (0..<rounds).map { _ in
      let mark = Mark.begin()
      let sum = PropertyAccess.readInt(of: handwritten[0], times: count)
      return mark.figure("", check: UInt64(truncatingIfNeeded: sum)).cpuSeconds * 1e9 / Double(count)
    }
    return times.min() ?? 0
  }

  /// The numbers of allocations per access of managed objects, the larger of both classes; nil where they can't be counted.
  ///
  /// Call it last: counting slows down the process.
  public func allocations(passes: Int) -> [Double?] {
    OperationCounts.start()
    return PropertyAccess.allCases.map { access in
      var counts = [allocations(access, handwritten, passes)]
      #if Macros
        counts.append(allocations(access, macros, passes))
      #endif
      return counts.contains(nil) ? nil : counts.compactMap { $0 }.max()
    }
  }

  /// The results of reading all properties, which don't depend on the class.
  public var checks: [[Int]] {
    PropertyAccess.allCases.map { access in
      var checks = [access.run(plain, passes: 1), access.run(handwritten, passes: 1)]
      #if Macros
        checks.append(access.run(macros, passes: 1))
      #endif
      return checks
    }
  }

  /// The nanoseconds for one access.
  private func time<Sample: PropertySample>(_ access: PropertyAccess, _ objects: [Sample], _ passes: Int) -> Double {
    let mark = Mark.begin()
    let sum = access.run(objects, passes: passes)
    let figure = mark.figure(access.rawValue, check: UInt64(truncatingIfNeeded: sum))
    return figure.cpuSeconds * 1e9 / Double(passes * objects.count)
  }

  private func allocations<Sample: PropertySample>(_ access: PropertyAccess, _ objects: [Sample], _ passes: Int) -> Double? {
    let before = OperationCounts.now
    let sum = access.run(objects, passes: passes)
    let counted = (OperationCounts.now - before).allocations
    return withExtendedLifetime(sum) { counted.map { Double($0) / Double(passes * objects.count) } }
  }
}
