import HoldfastStore
import Synchronization
import Testing

@Suite struct StoreAnswersTests {
  private struct Sum: StoreRequest {
    typealias Answer = Int
    static let operation = "add two numbers"
    var a, b: Int
  }

  private struct Name: StoreRequest {
    typealias Answer = String
    static let operation = "return the name"
  }

  private final class Answering: Sendable {
    static let table = AnswerTable<Answering>().answering(Sum.self) { store, sum, options in
      try options.check(Sum.operation)
      return sum.a + sum.b + store.offset
    }
    static let wrapping = AnswerTable<Answering>().answering(Sum.self) { store, sum, _ in Sum(a: sum.a, b: store.offset).a + store.offset }
      .answering(Name.self) { _, _, _ in "wrapper" }
    let offset: Int
    init(offset: Int) { self.offset = offset }
  }

  private struct Recorder: AnswerInterceptor {
    let seen = Shared()
    final class Shared: Sendable { let requests = Mutex<[String]>([]) }

    func answer<Request: StoreRequest>(
      _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
    ) throws -> Request.Answer {
      seen.requests.withLock { $0.append(Request.operation) }
      return try next(request, options)
    }
  }

  private func expectRefusal(of answers: StoreAnswers) {
    #expect(!answers.supports(Name.self))
    let error = #expect(throws: StoreError.self) { try answers.perform(Name()) }
    #expect(error?.code == .unsupportedRequest && error?.operation == "return the name")
  }

  @Test func aRequestReachesTheFunctionOfItsType() throws {
    let answers = Answering.table.bound(to: Answering(offset: 10))
    #expect(answers.supports(Sum.self))
    #expect(try answers.perform(Sum(a: 1, b: 2)) == 13)
    expectRefusal(of: answers)
  }

  @Test func theLastFunctionOfATypeAnswersItsRequests() throws {
    let table = Answering.table.answering(Name.self) { _, _, _ in "first" }.answering(Sum.self) { _, sum, _ in sum.a * sum.b }
      .answering(Name.self) { _, _, _ in "second" }
    let answers = table.bound(to: Answering(offset: 10))
    #expect(try answers.perform(Sum(a: 3, b: 4)) == 12 && answers.perform(Name()) == "second")
    expectRefusal(of: Answering.table.bound(to: Answering(offset: 10)))
  }

  @Test func aStoreWithoutAnswersRefusesEveryRequest() { expectRefusal(of: .none) }

  @Test func aTranslatingTableSupportsOnlyWhatTheWrappedStoreSupports() throws {
    let base = Answering.table.bound(to: Answering(offset: 0))
    let answers = Answering.wrapping.bound(to: Answering(offset: 5), wrapping: base)
    #expect(try answers.perform(Sum(a: 1, b: 2)) == 6)
    expectRefusal(of: answers)
  }

  @Test func anInterceptorReceivesSupportedRequests() throws {
    let recorder = Recorder(), answers = Answering.table.bound(to: Answering(offset: 0)).intercepted(by: recorder)
    #expect(try answers.perform(Sum(a: 2, b: 2)) == 4)
    let late = #expect(throws: StoreError.self) {
      try answers.perform(Sum(a: 2, b: 2), options: RequestOptions(deadline: .now - .seconds(1)))
    }
    #expect(late?.code == .timedOut)
    expectRefusal(of: answers)
    #expect(recorder.seen.requests.withLock { $0 } == ["add two numbers", "add two numbers"])
    expectRefusal(of: StoreAnswers.none.intercepted(by: recorder))
  }
}
