import AsyncHTTPClient
import Foundation
import HTTPService
import HTTPStore
import Holdfast
import ServiceAPI
import Testing

/// Lost connections, deadlines and cancellations.
@Suite struct OutageTests {
  private func titles(_ context: BackgroundContext) async throws -> [String] {
    try await context.perform { context in
      try context.fetch(Note.self, sortedBy: \.title).map(\.title)
    }
  }

  // MARK: Reading

  @Test(arguments: [Outages.Failure.status(503), .lostBefore, .lostAfter])
  func anOutageWhileReadingIsARetryableErrorAndTheNextFetchSucceeds(_ failure: Outages.Failure) async throws {
    let (service, context, _) = try await Notes.tenNotes()
    service.service.outages.fail(failure, failure)
    let error = try #require(await context.perform { context in storeError { try context.fetch(Note.self) } })
    #expect(error.code == .connectionLost && error.isRetryable)
    #expect(service.takeRequests() == ["POST query", "POST query"])
    #expect(try await titles(context).count == 10)
  }

  @Test(arguments: [Outages.Failure.status(503), .lostBefore, .lostAfter])
  func oneLostConnectionIsNotNoticed(_ failure: Outages.Failure) async throws {
    let (service, context, _) = try await Notes.tenNotes()
    service.service.outages.fail(failure)
    #expect(try await titles(context).count == 10)
    #expect(service.takeRequests() == ["POST query", "POST query"])
  }

  @Test func aServiceThatIsDownIsAnErrorUntilItIsUpAgain() async throws {
    let (service, context, _) = try await Notes.tenNotes()
    await service.stop()
    let error = try #require(
      await context.perform { context in
        context.insert(Note.self).title = "Offline"
        return storeError { try context.save() }
      })
    #expect(error.code == .connectionLost && error.isRetryable)
    let restarted = try await TestService.start(service.service, port: service.port)
    try await context.perform { try $0.save() }
    #expect(try await titles(context).count == 11)
    await restarted.stop()
  }

  @Test func aRequestPastItsDeadlineEnds() async throws {
    let (service, context, _) = try await Notes.tenNotes()
    service.service.outages.fail(.held)
    let error = try #require(
      await context.perform { context in
        context.requestTimeout = .milliseconds(100)
        defer { context.requestTimeout = nil }
        return storeError { try context.fetch(Note.self) }
      })
    #expect(error.code == .timedOut && error.isRetryable)
    service.service.outages.release()
    #expect(try await titles(context).count == 10)
  }

  @Test func aCancelledFetchEndsWhileTheServiceIsSilent() async throws {
    let (service, context, _) = try await Notes.tenNotes()
    service.service.outages.fail(.held)
    let fetch = Task { try await context.perform { try $0.fetch(Note.self).count } }
    while service.service.outages.heldCount == 0 { await Task.yield() }
    fetch.cancel()
    let error = await #expect(throws: StoreError.self) { try await fetch.value }
    #expect(error?.code == .cancelled)
    service.service.outages.release()
    #expect(try await titles(context).count == 10)
  }

  @Test func errorsContainNoCredentials() async throws {
    let (service, _, url) = try await Notes.tenNotes()
    let context = try await Notes.client(url.replacing("//", with: "//reader:secret@") + "?token=secret")
    await service.stop()
    let error = try #require(await context.perform { context in storeError { try context.fetch(Note.self) } })
    #expect(error.path == url && !"\(error)\(error.cause.map { "\($0)" } ?? "")".contains("secret"))
  }

  @Test func anAddressThatIsNoURLIsAnError() async throws {
    let error = await #expect(throws: StoreError.self) { try await Notes.client("notes.sqlite") }
    #expect(error?.code == .invalidPath && error?.isRetryable == false)
  }

  // MARK: Saving

  /// Inserts a note, and returns the error of the save.
  private func saveNew(_ title: String, _ context: BackgroundContext) async -> StoreError? {
    await context.perform { context in
      context.insert(Note.self).title = title
      return storeError { try context.save() }
    }
  }

  @Test(arguments: [Outages.Failure.status(503), .lostBefore, .lostAfter])
  func aSaveThatIsRepeatedHasTheSameIDAndInsertsNothingTwice(_ failure: Outages.Failure) async throws {
    let (service, context, url) = try await Notes.tenNotes()
    service.service.outages.fail(.none, failure)
    #expect(await saveNew("Once", context) == nil)
    let saves = service.service.outages.takeReceived().filter { $0.path.hasSuffix("/saves") }
    #expect(saves.count == 2 && Set(saves.map(\.idempotencyKey)).count == 1 && saves[0].idempotencyKey != nil)
    #expect(try await titles(Notes.client(url)).filter { $0 == "Once" }.count == 1)
  }

  @Test func aSaveThatTheServiceRefusedTwiceWasNotSaved() async throws {
    let (service, context, url) = try await Notes.tenNotes()
    service.service.outages.fail(.none, .status(503), .status(503))
    #expect(await saveNew("Later", context)?.code == .connectionLost)
    #expect(await context.perform { !$0.hasUncertainSave })
    try await context.perform { try $0.save() }
    #expect(try await titles(Notes.client(url)).filter { $0 == "Later" }.count == 1)
  }

  @Test(arguments: [Outages.Failure.lostBefore, .lostAfter])
  func theNextSaveFindsOutWhatBecameOfALostOne(_ failure: Outages.Failure) async throws {
    let (service, context, url) = try await Notes.tenNotes()
    service.service.outages.fail(.none, failure, failure)
    let error = await saveNew("Lost", context)
    #expect(error?.code == .outcomeUnknown && error?.isRetryable == true)
    #expect(await context.perform { $0.hasUncertainSave })
    _ = service.takeRequests()
    try await context.perform { context in
      context.insert(Note.self).title = "After"
      try context.save()
    }
    let requests = service.takeRequests()
    #expect(requests.first?.hasPrefix("DELETE saves/") == true && requests.last == "POST saves")
    #expect(try await titles(Notes.client(url)).filter { !$0.hasPrefix("Note") } == ["After", "Lost"])
  }

  @Test func anErrorAfterALostSaveDoesNotMeanThatNothingWasSaved() async throws {
    let (service, context, url) = try await Notes.tenNotes()
    service.service.outages.fail(.none, .lostAfter, .status(401))
    #expect(await saveNew("Saved", context)?.code == .outcomeUnknown)
    try await context.perform { try $0.save() }
    #expect(try await titles(Notes.client(url)).filter { $0 == "Saved" }.count == 1)
  }

  /// Such a save is lost. It isn't one whose outcome is unknown.
  @Test(arguments: [
    (HTTPClientError.connectTimeout, true), (.getConnectionFromPoolTimeout, true), (.readTimeout, false), (.remoteConnectionClosed, false),
  ])
  func aRequestThatGotNoConnectionInTimeWasNotSent(_ error: HTTPClientError, _ isUnsent: Bool) {
    #expect(error.isOfUnsentRequest == isUnsent)
  }

  @Test(arguments: [(401, StoreError.Code.notPermitted), (413, .tooLarge), (400, .general)])
  func aSaveThatTheServiceCannotAcceptWasNotSaved(_ status: Int, _ code: StoreError.Code) async throws {
    let (service, context, url) = try await Notes.tenNotes()
    service.service.outages.fail(.none, .status(status))
    let error = await saveNew("Refused", context)
    #expect(error?.code == code && error?.isRetryable == false)
    #expect(await context.perform { !$0.hasUncertainSave && $0.hasChanges })
    #expect(try await titles(Notes.client(url)).filter { $0 == "Refused" }.isEmpty)
  }

  @Test func aSaveThatArrivesAfterItWasReportedAsNotCommittedIsRefused() async throws {
    let (service, context, url) = try await Notes.tenNotes()
    service.service.outages.fail(.none, .lostBefore, .lostBefore)
    #expect(await saveNew("Slow", context)?.code == .outcomeUnknown)
    let lost = try #require(service.service.outages.takeReceived().first { $0.path.hasSuffix("/saves") })
    try await context.perform { try $0.save() }
    let late = try await send("POST", url + "/saves", lost.body, headers: ["Idempotency-Key": try #require(lost.idempotencyKey)])
    #expect(late.status == 410)
    #expect(try await titles(Notes.client(url)).filter { $0 == "Slow" }.count == 1)
  }

  @Test func aSavePastItsDeadlineEndsAndIsSavedOnce() async throws {
    let (service, context, url) = try await Notes.tenNotes()
    service.service.outages.fail(.none, .held)
    let error = await context.perform { context in
      context.insert(Note.self).title = "Slow"
      context.requestTimeout = .milliseconds(500)
      defer { context.requestTimeout = nil }
      return storeError { try context.save() }
    }
    // On a busy machine, the deadline passes before the service receives the save.
    let code = try #require(error).code
    #expect(code == .outcomeUnknown || code == .timedOut)
    service.service.outages.release()
    try await context.perform { try $0.save() }
    #expect(try await titles(Notes.client(url)).filter { $0 == "Slow" }.count == 1)
  }
}
