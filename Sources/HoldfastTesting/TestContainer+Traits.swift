public import Holdfast
public import Testing

extension TestContainer {
  @TaskLocal static var ofTest: TestContainer?

  /// The container of the current test, created by the trait `.testContainer(for:)`. Traps without the trait.
  public static var current: TestContainer {
    guard let ofTest else {
      preconditionFailure("The test has no container. Give it the trait .testContainer(for:), with its classes.")
    }
    return ofTest
  }
}

/// A trait that gives each case of a test a ``TestContainer`` of its own.
public struct TestContainerTrait: TestTrait, SuiteTrait, TestScoping {
  let classes: [ManagedObject.Type]

  /// True: the tests of a suite inherit the trait.
  public var isRecursive: Bool { true }

  /// Runs a case with a new container, which is released afterwards.
  public func provideScope(for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void) async throws {
    // A suite only passes the trait on to its tests.
    guard testCase != nil else { return try await function() }
    try await TestContainer.$ofTest.withValue(try TestContainer(classes), operation: function)
  }
}

/// A trait that limits the number of requests that a test sends to the store of its container.
public struct RequestBudgetTrait: TestTrait, SuiteTrait, TestScoping {
  let limit: Int
  let location: SourceLocation

  /// True: each test of a suite gets the budget.
  public var isRecursive: Bool { true }

  /// Runs a case, and records an issue if it sends too many requests.
  public func provideScope(for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void) async throws {
    guard testCase != nil else { return try await function() }
    guard let container = TestContainer.ofTest else {
      Issue.record("A budget needs a container: put the trait .testContainer(for:) before it.", sourceLocation: location)
      return try await function()
    }
    let record = RequestRecord(), observation = container.coordinator.observeRequests { record.add($0) }
    defer {
      observation.cancel()
      record.check(limit, location)
    }
    try await function()
  }
}

extension Trait where Self == TestContainerTrait {
  /// Gives each case of a test a container of its own, with an empty store in memory.
  ///
  /// ```swift
  /// @Test(.testContainer(for: Dog.self)) func newDogsHaveNoName() {
  ///   let context = TestContainer.current.newContext()
  ///   #expect(context.insert(Dog.self).name == "")
  /// }
  /// ```
  ///
  /// - Parameter classes: The classes, as for ``TestContainer/init(for:transformers:)``.
  public static func testContainer(for classes: ManagedObject.Type...) -> TestContainerTrait { TestContainerTrait(classes: classes) }
}

extension Trait where Self == RequestBudgetTrait {
  /// Limits the number of requests of each case; see ``expectRequests(atMost:to:sourceLocation:_:)``.
  ///
  /// Put it after `.testContainer(for:)`:
  ///
  /// ```swift
  /// @Test(.testContainer(for: Dog.self), .requests(atMost: 3)) func savingTakesThreeRequests() throws {
  ///   let context = TestContainer.current.newContext()
  ///   context.insert(Dog.self) { $0.name = "Fido" }
  ///   try context.save()
  /// }
  /// ```
  public static func requests(atMost limit: Int, sourceLocation location: SourceLocation = #_sourceLocation) -> RequestBudgetTrait {
    RequestBudgetTrait(limit: limit, location: location)
  }
}
