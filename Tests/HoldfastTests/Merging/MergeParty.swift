import Foundation
import TestSupport

@testable import Holdfast

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The first to save in a random round of merging.
protocol MergeParty {
  /// Reads everything into a new context.
  func read() throws -> KennelState
  /// Makes random changes in the context, and returns its state.
  func change(seed: UInt64, people: Bool) throws -> KennelState
  func save() throws
  /// The stored versions of the dogs, by chip.
  func versions() throws -> [Int64: Int64]
  /// Saves a new object that belongs to no dog.
  func saveAnything() throws
}

/// A context on the coordinator of the place.
final class ContextParty: MergeParty {
  private let place: TestStore.Place
  private var context: ManagedObjectContext?

  init(_ place: TestStore.Place) { self.place = place }

  private func current() throws -> ManagedObjectContext {
    let context = try self.context ?? place.context()
    self.context = context
    return context
  }

  func read() throws -> KennelState {
    context = nil
    return try KennelState(current())
  }

  func change(seed: UInt64, people: Bool) throws -> KennelState {
    var random = SeededGenerator(seed: seed)
    try MergeRound.change(current(), people: people, &random)
    return try KennelState(current())
  }

  func save() throws { try current().save() }

  func versions() throws -> [Int64: Int64] {
    let dogs = try place.context().fetch(FetchRequest<Dog>())
    return Dictionary(uniqueKeysWithValues: dogs.map { ($0.chip ?? -1, $0.readRow.version.rawValue) })
  }

  func saveAnything() throws {
    let context = try place.context()
    context.insert(Collar.self).color = "red"
    try context.save()
  }
}

/// A ``ContextParty`` in a forked process, which keeps its store open.
///
/// Create it before this process opens a store.
final class OtherProcess: MergeParty {
  private enum Command: Codable {
    case read, save, versions, saveAnything, end
    case change(seed: UInt64, people: Bool)
  }
  private enum Answer: Codable {
    case state(KennelState), versions([Int64: Int64]), done, failed(String)
  }

  private let commands: FileHandle
  private let answers: FileHandle

  init(_ place: TestStore.Place) {
    let commands = Pipe(), answers = Pipe()
    (self.commands, self.answers) = (commands.fileHandleForWriting, answers.fileHandleForReading)
    if System.fork() == 0 {
      // It ends when this process does.
      for file in [commands.fileHandleForWriting, answers.fileHandleForReading] { try? file.close() }
      Self.serve(place, commands.fileHandleForReading, answers.fileHandleForWriting)
    }
    for file in [commands.fileHandleForReading, answers.fileHandleForWriting] { try? file.close() }
  }

  func read() throws -> KennelState { try state(.read) }
  func change(seed: UInt64, people: Bool) throws -> KennelState { try state(.change(seed: seed, people: people)) }
  func save() throws { _ = try answer(to: .save) }
  func saveAnything() throws { _ = try answer(to: .saveAnything) }

  func versions() throws -> [Int64: Int64] {
    guard case .versions(let versions) = try answer(to: .versions) else { throw FailureApart(description: "It gave another answer.") }
    return versions
  }

  /// Closes the store, and ends the process.
  func end() throws { _ = try answer(to: .end) }

  private func state(_ command: Command) throws -> KennelState {
    guard case .state(let state) = try answer(to: command) else { throw FailureApart(description: "It gave another answer.") }
    return state
  }

  private func answer(to command: Command) throws -> Answer {
    try Self.send(command, commands)
    let answer: Answer = try Self.receive(answers)
    if case .failed(let error) = answer { throw FailureApart(description: error) }
    return answer
  }

  // MARK: The other process

  private static func serve(_ place: TestStore.Place, _ commands: FileHandle, _ answers: FileHandle) -> Never {
    let party = ContextParty(place)
    while true {
      guard let command: Command = try? receive(commands) else { _exit(1) }
      System.limitTime()
      do { try send(carryOut(command, party, place), answers) } catch { try? send(Answer.failed("\(error)"), answers) }
      if case .end = command { _exit(0) }
    }
  }

  private static func carryOut(_ command: Command, _ party: ContextParty, _ place: TestStore.Place) throws -> Answer {
    switch command {
    case .read: return .state(try party.read())
    case .change(let seed, let people): return .state(try party.change(seed: seed, people: people))
    case .versions: return .versions(try party.versions())
    case .save: try party.save()
    case .saveAnything: try party.saveAnything()
    case .end: try place.close()
    }
    return .done
  }

  // MARK: Messages

  /// Each message is preceded by its size in bytes.
  private static func send(_ message: some Encodable, _ file: FileHandle) throws {
    let text = try JSONEncoder().encode(message)
    try file.write(contentsOf: withUnsafeBytes(of: Int64(text.count)) { Data($0) } + text)
  }

  private static func receive<Message: Decodable>(_ file: FileHandle) throws -> Message {
    func bytes(_ count: Int) throws -> Data {
      var bytes = Data()
      while bytes.count < count {
        guard let more = try file.read(upToCount: count - bytes.count), !more.isEmpty else {
          throw FailureApart(description: "The other process ended.")
        }
        bytes += more
      }
      return bytes
    }
    let count = try bytes(MemoryLayout<Int64>.size).withUnsafeBytes { $0.loadUnaligned(as: Int64.self) }
    return try JSONDecoder().decode(Message.self, from: bytes(Int(count)))
  }
}
