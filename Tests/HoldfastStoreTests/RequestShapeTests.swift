import Foundation
import HoldfastStore
import Testing

/// Optional requests that no store of this package answers yet: their values can be coded, and reach a store through wrappers.
@Suite struct RequestShapeTests {
  init() throws {
    let model = try ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [AttributeDescription("age", .integer64)])])
    id = StoreIdentity.intern(storeUUID: "5E8F0E1C-0000-0000-0000-000000000000", model: model)
      .objectID(entity: model.entities[0], key: 7)
  }

  private func coded<Value: Codable>(_ value: Value) throws -> Value {
    try JSONDecoder().decode(Value.self, from: JSONEncoder().encode(value))
  }

  private let id: ManagedObjectID
  private let state = StateToken(storeUUID: "A", bytes: [0, 255])

  @Test func assignmentsAreCoded() throws {
    let older = BatchUpdateRequest.Assignment(
      slot: 0, value: .sum(.slot(0), .product(.constant(.int64(2)), .quotient(.slot(0), .difference(.slot(0), .constant(.double(0.5)))))))
    #expect(try coded(older) == older)
  }

  @Test func resultsAreCoded() throws {
    let result = BatchResult(rowCount: 2, objectIDs: [id], state: state)
    #expect(try coded(result) == result)
    #expect(try coded(BatchResult(rowCount: 0)).objectIDs == nil)
  }

  @Test func historyIsCoded() throws {
    let changes = [
      HistoryTransaction.Change(
        objectID: id, kind: .updated, updatedProperties: ["age", "name"], formerValues: ["age": .int64(1), "name": .null]),
      HistoryTransaction.Change(objectID: id, kind: .deleted, tombstone: ["name": .string("Fido")]),
    ]
    let time = Date(timeIntervalSinceReferenceDate: 12.5)
    let transaction = HistoryTransaction(state: state, number: 7, time: time, author: "sync", contextName: "import", changes: changes)
    let history = HistoryTransactions(transactions: [transaction], state: state)
    #expect(try coded(history) == history)
  }

  private final class Insertions: Sendable {
    static let table = AnswerTable<Insertions>().answering(BatchInsertRequest.self) { _, request, _ in
      BatchResult(rowCount: request.rows.count)
    }
  }

  private struct Pass: AnswerInterceptor {
    func answer<Request: StoreRequest>(
      _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
    ) throws -> Request.Answer { try next(request, options) }
  }

  @Test func aStoreThatAnswersABatchIsReachedThroughWrappersAndRefusesOthers() throws {
    let answers = Insertions.table.bound(to: Insertions()).intercepted(by: Pass())
    #expect(try answers.perform(BatchInsertRequest(entity: 0, slots: [0], rows: [[.int64(1)], [.int64(2)]])).rowCount == 2)
    let plan = FetchPlan(entity: 0, concreteEntities: [0])
    let error = #expect(throws: StoreError.self) { try answers.perform(BatchDeleteRequest(plan: plan)) }
    #expect(error?.code == .unsupportedRequest && error?.operation == "delete rows in a batch")
  }
}
