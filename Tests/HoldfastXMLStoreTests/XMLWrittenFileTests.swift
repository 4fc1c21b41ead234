import Foundation
import Holdfast
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

/// Written files can be opened again without changes, and look like Core Data's files.
@Suite(.bothReaders) struct XMLWrittenFileTests {
  private let file: XMLFile
  init() throws { file = try XMLFile() }

  @Test func everythingComesBack() throws {
    var context = try file.context()
    try Library.fill(context)
    let before = try Library.contents(context)
    try context.persistentStoreCoordinator.close()
    context = try file.context()
    #expect(try Library.contents(context) == before)
    try context.persistentStoreCoordinator.close()
  }

  /// The bug: the file was damaged, because the relationship's index was greater than the number of bytes in the notes.
  @Test func theOrderOfOneOfManyOrderedRelationshipsComesBack() throws {
    let lists = (10..<60).map { RelationshipDescription.toMany("list\($0)", to: "Item", inverse: nil, isOrdered: true) }
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Owner", relationships: lists), EntityDescription("Item", attributes: [AttributeDescription("name", .string)]),
    ])
    var context = try file.context(model)
    let list = try context.insert(entityNamed: "Owner").ordered(forKey: "list59")
    for name in ["a", "b"] {
      let item = try context.insert(entityNamed: "Item")
      try item.setValue(.string(name), forKey: "name")
      list.append(item)
    }
    try context.save()
    list.move(from: 1, to: 0)
    try context.save()
    try context.persistentStoreCoordinator.close()
    context = try file.context(model)
    let owner = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Owner")).first)
    let names = try owner.ordered(forKey: "list59").map { try $0.value(forKey: "name").storeValue }
    #expect(names == [.string("b"), .string("a")])
    try context.persistentStoreCoordinator.close()
  }

  @Test func theObjectsLookAsCoreDataWritesThem() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Note", attributes: [AttributeDescription("title", .string), AttributeDescription("dateUsed", .date, isOptional: true)],
        relationships: [.toMany("tags", to: "Tag", inverse: "note"), .toOne("first", to: "Note", inverse: nil)]),
      EntityDescription(
        "Tag", attributes: [AttributeDescription("isUsed", .boolean), AttributeDescription("bytes", .binaryData, isOptional: true)],
        relationships: [.toOne("note", to: "Note", inverse: "tags", isOptional: false)]),
    ])
    let context = try file.context(model)
    let note = try context.insert(entityNamed: "Note")
    try note.setValue(.string("a<b>&\\\n\u{1}é"), forKey: "title")
    try note.setValue(.date(318_303_001.847_817_957), forKey: "dateUsed")
    for isUsed in [true, false] {
      let tag = try context.insert(entityNamed: "Tag")
      try tag.setValue(.bool(isUsed), forKey: "isUsed")
      try tag.setValue(.data(Data(repeating: 0xFF, count: isUsed ? 60 : 0)), forKey: "bytes")
      try tag.setValue(.objectID(note.objectID), forKey: "note")
    }
    try context.save()
    try context.persistentStoreCoordinator.close()
    let text = try file.text()
    let objects = try #require(text.range(of: "</databaseInfo>\n"))
    let end = try #require(text.range(of: "<!-- xxh64:"))
    #expect(
      text[objects.upperBound..<end.lowerBound] == """
        <object type="NOTE" id="z1"><attribute name="dateused" type="date">318303001.84781795740127563477</attribute>\
        <attribute name="title" type="string">a\\u3c00b\\u3e00\\u2600\\u5c00\n\\u0100é</attribute>\
        <relationship name="first" type="0/1" destination="NOTE"/>\
        <relationship name="tags" type="0/0" destination="TAG" idrefs="z2 z3"/></object>
        <object type="TAG" id="z2">\
        <attribute name="bytes" type="binary">////////////////////////////////////////////////////////////////////////////
        ////</attribute><attribute name="isused" type="bool">1</attribute>\
        <relationship name="note" type="1/1" destination="NOTE" idrefs="z1"/></object>
        <object type="TAG" id="z3"><attribute name="bytes" type="binary"></attribute><attribute name="isused" type="bool">0</attribute>\
        <relationship name="note" type="1/1" destination="NOTE" idrefs="z1"/></object>
        </database>

        """)
    #expect(text.hasPrefix("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<!DOCTYPE database SYSTEM \"file:///System/"))
    #expect(text.contains("<version>134481920</version>\n<UUID>") && text.contains("<nextObjectID>3</nextObjectID>"))
  }
}
